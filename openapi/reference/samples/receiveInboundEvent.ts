import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";

const id = "msg_2mXqPzT0";
const time = String(Math.floor(Date.now() / 1000));
const message = {
  type: "ecf.commercial_response",
  data: { encf: "E310000000157", xml_base64: await readFile("response.xml", "base64") },
};
const secret = process.env.SOURCE_SECRET ?? "";
const signature = createHmac("sha256", Buffer.from(secret.replace("whsec_", ""), "base64"))
  .update(`${id}.${time}.${JSON.stringify(message)}`).digest("base64");
const answer = await call("POST", `/v1/events/inbound/${sourceId}`, {
  "webhook-id": id, "webhook-timestamp": time, "webhook-signature": `v1,${signature}`,
}, message);
console.log((await answer.json()).data);
