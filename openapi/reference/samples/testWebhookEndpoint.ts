const answer = await call("POST", `${taxpayer}/webhook-endpoints/${endpointId}/test`);
console.log((await answer.json()).data.delivered);
