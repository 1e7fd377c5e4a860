import { writeFile } from "node:fs/promises";

const answer = await call("GET", `${taxpayer}/fiscal-documents/${documentId}/xml`);
await writeFile("signed.xml", Buffer.from(await answer.arrayBuffer()));
