// Uses every part of the client against a live service with a simulated authority. It fails
// when an answer is not the expected one. systemtest/typescript_client_test.go runs it.
import assert from "node:assert/strict";
import { ApiError, Client, isFiscalEvent } from "../dist/index.js";

const settings = { baseUrl: process.env.FISCALHUB_URL, apiKey: process.env.FISCALHUB_KEY, taxpayerId: process.env.FISCALHUB_TAXPAYER };
const client = new Client(settings);
const sale = (externalId) => ({
  external_id: externalId,
  ecf_type: "32",
  issue_date: "2026-11-14",
  currency: "DOP",
  payment_type: "cash",
  buyer: { legal_name: "Consumidor final" },
  lines: [{ line_id: "1", description: "Café", item_kind: "product", quantity: "1", unit_price: "100.00", discount: null, taxes: [] }],
  declared_totals: { subtotal: "100.00", discount_total: "0.00", tax_total: "0.00", total: "100.00" },
});
const timeoutMs = 300_000;

// From the key to the verdict.
const prepared = client.prepareInvoice(sale("tour-1"));
const created = await client.sendInvoice(prepared, { timeoutMs });
const again = await client.sendInvoice(prepared, { timeoutMs });
assert.equal(again.data.id, created.data.id);
assert.ok(again.meta.replayed && !created.meta.replayed);
assert.equal(again.meta.originRequestId, created.meta.requestId);
const decided = await client.waitForOutcome(created.data.id, { timeoutMs });
assert.equal(decided.data.status, "accepted");
const found = await client.findDocument("tour-1", { timeoutMs });
assert.match(found.data.encf, /^E32/);
assert.equal((await client.findDocument("no such sale")).data, undefined);
assert.equal((await client.getDocument(found.data.id)).data.invoice_id, created.data.id);
assert.match(new TextDecoder().decode((await client.documentXml(found.data.id)).data), /^<\?xml/);
const pdf = await client.documentPdf(found.data.id, { format: "receipt" });
assert.equal(new TextDecoder().decode(pdf.data.slice(0, 5)), "%PDF-");

// Lists and the feed.
await client.createInvoice(sale("tour-2"), { idempotencyKey: "tour-2", waitSeconds: 1 });
await client.createInvoice(sale("tour-3"), { onKey: () => {} });
const ids = [];
for await (const invoice of client.allInvoices({ limit: 1 })) ids.push(invoice.external_id);
assert.deepEqual(ids, ["tour-3", "tour-2", "tour-1"]);
const accepted = new Set();
for await (const page of client.followEvents({ limit: 1, signal: AbortSignal.timeout(timeoutMs) })) {
  for (const event of page.data) {
    if (isFiscalEvent(event) && event.data.status === "accepted") accepted.add(event.data.external_id);
  }
  if (accepted.size === 3) break;
}
let events = 0;
for await (const event of client.allEvents({ limit: 2 })) events += event.id ? 1 : 0;
assert.ok(events >= 3);

// Typed errors, in both languages.
const wrong = { ...sale("tour-4"), declared_totals: { ...sale("").declared_totals, total: "1.00" } };
const messages = [];
for (const language of ["en", "es"]) {
  const error = await new Client({ ...settings, language }).createInvoice(wrong, { idempotencyKey: "tour-4" }).catch((e) => e);
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.status, error.code, error.details[0].field, error.details[0].code], [422, "validation_error", "declared_totals.total", "total_mismatch"]);
  assert.match(error.requestId, /^req_/);
  messages.push(error.details[0].message);
}
assert.notEqual(messages[0], messages[1]);
const conflict = await client.createInvoice(sale("tour-1"), { idempotencyKey: "another" }).catch((e) => e);
assert.equal(conflict.code, "external_id_conflict");
assert.ok(conflict.location.endsWith(created.data.id));

// Webhook endpoints.
const endpoint = await client.createWebhookEndpoint({ url: "https://erp.example.com/fiscal", events: ["*"] }, { idempotencyKey: "hook" });
assert.match(endpoint.data.secret, /^whsec_/);
assert.notEqual((await client.rotateWebhookSecret(endpoint.data.id)).data.secret, endpoint.data.secret);
assert.equal((await client.enableWebhookEndpoint(endpoint.data.id)).data.status, "enabled");
assert.equal((await client.getWebhookEndpoint(endpoint.data.id)).data.url, "https://erp.example.com/fiscal");
assert.equal(typeof (await client.replayWebhookEvents(endpoint.data.id, { failed: true })).data.events, "number");
for await (const delivery of client.allWebhookDeliveries(endpoint.data.id)) assert.ok(delivery.event_id);
for await (const other of client.allWebhookEndpoints()) assert.equal(other.id, endpoint.data.id);
await client.deleteWebhookEndpoint(endpoint.data.id);
await assert.rejects(client.getWebhookEndpoint(endpoint.data.id), (e) => e.code === "not_found");
