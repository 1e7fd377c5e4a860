const answer = await call("POST", `${taxpayer}/webhook-endpoints/${endpointId}/enable`);
console.log((await answer.json()).data.status);
