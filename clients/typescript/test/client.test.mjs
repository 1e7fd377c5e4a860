// Tests of the client against answers that a function makes. The tests against the real
// service are in systemtest/typescript_client_test.go.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { ApiError, Client, ConnectionError, DeadlineError, WebhookError, isDecided, isFiscalEvent, newIdempotencyKey, verifyWebhook } from "../dist/index.js";

const taxpayerId = "0195d3a2-7c1e-7b40-9f15-3a6c2e8d4b01";
const invoiceId = "01960b54-9a3d-7e12-8c47-51f0d2a96e30";
const request = { external_id: "F-1", buyer: { legal_name: "Ñandú" } };

/** Answers each request with the next function, and the last one for ever. */
function service(...answers) {
  const seen = [];
  const fetch = async (url, init) => {
    seen.push({ url, ...init, text: init.body && new TextDecoder().decode(init.body) });
    return answers[Math.min(seen.length, answers.length) - 1](init);
  };
  const client = (options) => new Client({ baseUrl: "http://service.example", apiKey: "fh_key", taxpayerId, fetch, ...options });
  return { seen, client };
}

const ok = (data, meta = {}, status = 200, headers = {}) => () =>
  new Response(JSON.stringify({ data, meta: { request_id: "req_1", ...meta } }), { status, headers });
const made = ok({ id: invoiceId, status: "queued" }, {}, 202);
const refuse = (status, code, headers = {}, details) => () =>
  new Response(JSON.stringify({ error: { code, message: "no", request_id: "req_2", details } }), { status, headers });
const lost = () => {
  throw new TypeError("fetch failed", { cause: new Error("read ECONNRESET") });
};
/** Never answers, and fails as fetch does when its signal is aborted. */
const silent = (init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));

describe("creations", { concurrency: true }, () => {
  test("the key is made once and stored before the first request", async () => {
    const s = service(lost, lost, made);
    let stored;
    const answer = await s.client().createInvoice(request, {
      onKey: async (prepared) => {
        assert.equal(s.seen.length, 0);
        stored = prepared;
      },
    });
    assert.match(stored.idempotencyKey, /^key_[0-9a-f]{32}$/);
    assert.equal(answer.meta.idempotencyKey, stored.idempotencyKey);
    assert.deepEqual(s.seen.map((r) => r.headers["Idempotency-Key"]), Array(3).fill(stored.idempotencyKey));
    assert.deepEqual(s.seen.map((r) => r.text), Array(3).fill(stored.body));
    assert.equal(new Set(s.seen.map((r) => r.headers["X-Request-Id"])).size, 3);
  });

  test("nothing is sent when the key is not stored, or there is none", async () => {
    const s = service(made);
    await assert.rejects(s.client().createInvoice(request, { onKey: () => Promise.reject(new Error("disk full")) }), /disk full/);
    await assert.rejects(s.client().createInvoice(request, {}), /idempotencyKey/);
    for (const idempotencyKey of ["", " x", "ñ", "x".repeat(201), "a\nb"]) {
      await assert.rejects(s.client().createInvoice(request, { idempotencyKey }), TypeError);
    }
    assert.equal(s.seen.length, 0);
  });

  test("a prepared request is sent as it is", async () => {
    const s = service(made);
    const client = s.client({ language: "es" });
    const prepared = client.prepareInvoice(request);
    await client.sendInvoice(prepared, { scenario: "rejected", waitSeconds: 1.2 });
    const { headers, text, url, method, redirect } = s.seen[0];
    assert.equal(text, JSON.stringify(request));
    assert.equal(method + " " + url, `POST http://service.example/v1/taxpayers/${taxpayerId}/invoices`);
    assert.equal(redirect, "manual");
    assert.equal(headers.Authorization, "Bearer fh_key");
    assert.equal(headers["Accept-Language"], "es");
    assert.equal(headers["Sandbox-Scenario"], "rejected");
    assert.equal(headers.Prefer, "wait=2");
  });
});

describe("retries", { concurrency: true }, () => {
  test("after a 429 and a 503, not before Retry-After", async () => {
    const s = service(refuse(429, "rate_limited", { "Retry-After": "1" }), refuse(503, "service_unavailable"), made);
    const begun = performance.now();
    await s.client().createInvoice(request, { idempotencyKey: "k" });
    assert.equal(s.seen.length, 3);
    assert.ok(performance.now() - begun >= 1000);
  });

  test("not after other answers, and not after a long Retry-After", async () => {
    for (const [status, headers] of [[400, {}], [409, {}], [422, {}], [500, {}], [502, {}], [302, { Location: "http://other.example" }], [503, { "Retry-After": "121" }]]) {
      const s = service(refuse(status, "x", headers));
      await assert.rejects(s.client().createInvoice(request, { idempotencyKey: "k" }), (e) => e instanceof ApiError && e.status === status);
      assert.equal(s.seen.length, 1, String(status));
    }
  });

  test("not when the certificate is not trusted", async () => {
    const s = service(() => {
      throw new TypeError("fetch failed", { cause: Object.assign(new Error("self-signed"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }) });
    });
    await assert.rejects(s.client().getInvoice(invoiceId), ConnectionError);
    assert.equal(s.seen.length, 1);
  });

  test("of a rotation only after a 429", async () => {
    const s = service(refuse(429, "rate_limited"), lost);
    await assert.rejects(s.client().rotateWebhookSecret(invoiceId), ConnectionError);
    assert.equal(s.seen.length, 2);
  });

  test("as often as attempts says", async () => {
    const s = service(lost);
    await assert.rejects(s.client({ attempts: 2 }).getInvoice(invoiceId), /ECONNRESET/);
    assert.equal(s.seen.length, 2);
  });

  test("an attempt without an answer ends", async () => {
    const s = service(silent, ok({ id: invoiceId }));
    await s.client({ attemptTimeoutMs: 50 }).getInvoice(invoiceId);
    assert.ok(s.seen.length >= 2);
  });
});

describe("deadlines", { concurrency: true }, () => {
  test("a call ends with its time", async () => {
    await assert.rejects(service(silent).client().getInvoice(invoiceId, { timeoutMs: 50 }), DeadlineError);
  });

  test("a wait beyond the time is not begun", async () => {
    const s = service(refuse(503, "service_unavailable", { "Retry-After": "100" }));
    await assert.rejects(s.client().getInvoice(invoiceId, { timeoutMs: 60_000 }), (e) => e instanceof DeadlineError && e.cause instanceof ApiError);
  });

  test("a signal ends a request and a wait", async () => {
    for (const answer of [silent, refuse(503, "service_unavailable", { "Retry-After": "100" })]) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error("closed")), 50);
      await assert.rejects(service(answer).client().getInvoice(invoiceId, { signal: controller.signal }), /closed/);
    }
  });

  test("waitForOutcome returns the invoice that it saw last", async () => {
    const s = service(ok({ id: invoiceId, status: "submitted" }), refuse(503, "service_unavailable", { "Retry-After": "100" }));
    await assert.rejects(s.client().waitForOutcome(invoiceId, { timeoutMs: 60_000 }), (e) => e instanceof DeadlineError && e.invoice.status === "submitted");
  });
});

test("waitForOutcome waits for a decided status", async () => {
  const s = service(ok({ id: invoiceId, status: "outcome_unknown" }), ok({ id: invoiceId, status: "accepted" }));
  assert.equal((await s.client().waitForOutcome(invoiceId)).data.status, "accepted");
  assert.equal(s.seen[0].headers.Prefer, "wait=20");
  assert.ok(isDecided("rejected") && !isDecided("outcome_unknown"));
});

test("an error has its code, details and request id", async () => {
  const details = [{ field: "lines.0.quantity", code: "required", message: "is required" }];
  const s = service(refuse(422, "validation_error", {}, details));
  await assert.rejects(s.client().getInvoice(invoiceId), (e) => {
    assert.deepEqual([e.code, e.requestId, e.details], ["validation_error", "req_2", details]);
    assert.match(e.message, /lines\.0\.quantity: is required; 1 in all/);
    return true;
  });
  const proxy = service(() => new Response("<html>", { status: 502 }));
  await assert.rejects(proxy.client().getInvoice(invoiceId), (e) => e instanceof ApiError && e.code === undefined && e.status === 502);
});

test("lists and the feed are read page by page", async () => {
  const s = service(ok([{ id: 1 }, { id: 2 }], { next_cursor: "a b" }), ok([{ id: 3 }], { next_cursor: null }));
  const ids = [];
  for await (const invoice of s.client().allInvoices({ limit: 2, status: "queued" })) ids.push(invoice.id);
  assert.deepEqual(ids, [1, 2, 3]);
  assert.equal(new URL(s.seen[1].url).searchParams.get("cursor"), "a b");
  assert.equal(new URL(s.seen[1].url).searchParams.get("status"), "queued");

  const feed = service(ok([{ id: "evt_1" }], { next_cursor: "c1", has_more: true }), ok([], { next_cursor: "c1", has_more: false }), ok([{ id: "evt_2" }], { next_cursor: "c2", has_more: false }));
  const cursors = [];
  for await (const page of feed.client().followEvents()) {
    cursors.push(page.meta.nextCursor);
    if (cursors.length === 2) break;
  }
  assert.deepEqual(cursors, ["c1", "c2"]);
  assert.equal(new URL(feed.seen[0].url).searchParams.get("wait"), "30");
});

test("values that cannot be valid are refused before a request", async () => {
  const options = { baseUrl: "http://service.example", apiKey: "k", taxpayerId };
  for (const wrong of [{ baseUrl: "ftp://x" }, { baseUrl: "http://u:p@x" }, { apiKey: "" }, { apiKey: "a b" }, { taxpayerId: "../x" }, { attempts: 0 }, { attemptTimeoutMs: 0 }]) {
    assert.throws(() => new Client({ ...options, ...wrong }), TypeError);
  }
  const s = service(made);
  await assert.rejects(s.client().getInvoice("../webhook-endpoints"), TypeError);
  await assert.rejects(s.client().sendInvoice({ idempotencyKey: newIdempotencyKey(), body: "x".repeat((1 << 20) + 1) }), RangeError);
  assert.equal(s.seen.length, 0);
  assert.doesNotMatch(JSON.stringify(s.client()), /fh_key/);
});

test("verifyWebhook takes what the service signed, and nothing else", async () => {
  const key = Buffer.from("0123456789abcdef0123456789abcdef");
  const secret = "whsec_" + key.toString("base64");
  const other = "whsec_" + Buffer.from("another secret of 32 bytes......").toString("base64");
  const body = JSON.stringify({ id: "evt_1", type: "fiscal_document.accepted", data: { object: "fiscal_document", external_id: "ñandú" } });
  const at = 1_790_000_000;
  const now = () => at * 1000;
  const sign = (id, time, text) => "v1," + createHmac("sha256", key).update(`${id}.${time}.${text}`).digest("base64");
  const headers = (change = {}) => ({ "webhook-id": "evt_1", "webhook-timestamp": String(at), "webhook-signature": sign("evt_1", at, body), ...change });

  const event = await verifyWebhook(headers(), body, secret, { now });
  assert.ok(isFiscalEvent(event) && event.data.external_id === "ñandú");
  await verifyWebhook(new Headers(headers()), Buffer.from(body), [other, secret], { now });
  await verifyWebhook(headers({ "webhook-signature": "v2,x v1,% " + sign("evt_1", at, body) }), body, secret, { now });

  const refused = async (reason, h, text = body, secrets = [secret], time = now) =>
    assert.rejects(verifyWebhook(h, text, secrets, { now: time }), (e) => e instanceof WebhookError && e.reason === reason);
  await refused("signature", headers(), body, [other]);
  await refused("signature", headers(), body, []);
  await refused("signature", headers(), body + " ");
  await refused("signature", headers({ "webhook-id": "evt_2" }));
  await refused("signature", headers({ "webhook-timestamp": String(at - 1) }));
  await refused("signature", headers({ "webhook-signature": "v1,ñ v1, ," }));
  await refused("headers", headers({ "webhook-id": undefined }));
  await refused("headers", headers({ "webhook-id": ["a", "b"] }));
  await refused("headers", headers({ "Webhook-Id": "evt_1" }));
  await refused("headers", headers({ "webhook-timestamp": "now" }));
  await refused("headers", headers({ "webhook-signature": "x".repeat(2049) }));
  for (const distance of [-301, 301]) await refused("time", headers(), body, [secret], () => (at + distance) * 1000);
  await assert.rejects(verifyWebhook(headers(), body, "whsec_", { now }), TypeError);
});

test("the package exports each schema of the OpenAPI document", () => {
  const read = (name) => readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8");
  const schemas = [...read("openapi.ts").matchAll(/^export type (\w+) = components\['schemas'\]/gm)].map((m) => m[1]);
  const exported = read("api.ts").match(/\w+/g);
  assert.deepEqual(schemas.filter((name) => !exported.includes(name)), []);
  assert.ok(schemas.length > 50);
});
