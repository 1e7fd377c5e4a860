const answer = await call("POST", `${taxpayer}/webhook-endpoints`,
  { "Idempotency-Key": "erp-endpoint" },
  { url: "https://erp.example.com/fiscal", events: ["*"] });
const endpoint = (await answer.json()).data;
console.log(endpoint.id, endpoint.secret); // store the secret
