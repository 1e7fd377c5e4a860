import { writeFile } from "node:fs/promises";

const answer = await call("GET", `${taxpayer}/fiscal-documents/${documentId}/pdf?format=receipt`);
await writeFile("page.pdf", Buffer.from(await answer.arrayBuffer()));
