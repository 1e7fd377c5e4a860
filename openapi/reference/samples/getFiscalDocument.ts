const answer = await call("GET", `${taxpayer}/fiscal-documents/${documentId}`);
const document = (await answer.json()).data;
console.log(document.encf, document.status_messages);
