/**
 * The client of the fiscalhub API, version 1. It needs no other package, and only what Node 20,
 * Deno, Bun, workers and browsers have: fetch, URL and WebCrypto. An API key does not belong
 * into a public page.
 */
export { Client, isDecided, newIdempotencyKey } from "./client.js";
export type { Answer, AnswerMeta, ClientOptions, EventOptions, InvoiceOptions, KeyOptions, ListOptions, PageOptions, PreparedRequest } from "./client.js";
export type { CallOptions } from "./exchange.js";
export { ApiError, ConnectionError, DeadlineError, WebhookError } from "./errors.js";
export { isFiscalEvent, verifyWebhook } from "./webhook.js";
export type { FiscalhubEvent, VerifyOptions, WebhookHeaders } from "./webhook.js";
export type * from "./api.js";
