const answer = await call("POST", `${taxpayer}/webhook-endpoints/${endpointId}/rotate-secret`);
console.log((await answer.json()).data.secret);
