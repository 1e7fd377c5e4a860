const answer = await call("GET", `${taxpayer}/invoices/${invoiceId}`, { Prefer: "wait=20" });
const invoice = (await answer.json()).data;
console.log(invoice.status);
