import { writeFile } from "node:fs/promises";

const answer = await call("GET", "/v1/openapi.json");
await writeFile("openapi.json", await answer.text());
