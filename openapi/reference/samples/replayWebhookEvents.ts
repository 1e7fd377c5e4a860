const answer = await call("POST", `${taxpayer}/webhook-endpoints/${endpointId}/replay`, {}, { failed: true });
console.log((await answer.json()).data.events);
