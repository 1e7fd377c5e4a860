const answer = await call("GET", `${taxpayer}/webhook-endpoints/${endpointId}`);
console.log((await answer.json()).data.status);
