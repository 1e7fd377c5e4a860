const answer = await call("GET", `${taxpayer}/fiscal-documents?external_id=FA-2026-0418`);
const [document] = (await answer.json()).data; // undefined when there is none
console.log(document.id, document.status);
