import { operations } from "./api.js";
import type * as api from "./api.js";
import { DeadlineError } from "./errors.js";
import { pause, randomHex, send } from "./exchange.js";
import type { CallOptions, RawAnswer, Transport } from "./exchange.js";
import type { FiscalhubEvent } from "./webhook.js";

export interface ClientOptions {
  /** The address of the service, like `https://invoices.example.com`. */
  baseUrl: string;
  apiKey: string;
  taxpayerId: string;
  /** The language of messages for people. Without it the service answers in English. */
  language?: "es" | "en";
  /** How many times the client sends one request at most. The default is 5; 1 turns retries off. */
  attempts?: number;
  /** How long one attempt may take. The default is 60,000. */
  attemptTimeoutMs?: number;
  /** Sends the requests. The default is the fetch of the platform. */
  fetch?: typeof globalThis.fetch;
}

/** What an answer has besides its data. */
export interface AnswerMeta {
  /** Identifies this request. Store it: support needs it. */
  requestId: string;
  /** Identifies the answer: answers with the same one have the same body. It differs from requestId in a replayed answer. */
  originRequestId: string;
  /** The answer is that of an earlier request with the same key and body. */
  replayed: boolean;
  /** The key of a creation. */
  idempotencyKey?: string;
  /** The path of the created object. */
  location?: string;
  /** The cursor of the next page. A list has none on its last page, the feed always has one. */
  nextCursor?: string;
  /** The feed has more events already. */
  hasMore?: boolean;
}

export interface Answer<T> {
  data: T;
  meta: AnswerMeta;
}

/** A creation that can be sent again at any time, also after a crash, and has its effect once. */
export interface PreparedRequest {
  idempotencyKey: string;
  /** The JSON of the request. Store it with the key. */
  body: string;
}

/**
 * The key of a creation: one that you chose and stored, or a function that stores the one that
 * the client makes. The client waits for the function before it sends the first request, and
 * sends nothing when the function fails.
 */
export type KeyOptions =
  | { idempotencyKey: string; onKey?: never }
  | { onKey: (prepared: PreparedRequest) => void | Promise<void>; idempotencyKey?: never };

export interface InvoiceOptions extends CallOptions {
  /** Asks the service to answer when the verdict is known, after 20 seconds at most. */
  waitSeconds?: number;
  /** What the sandbox does with the invoice. */
  scenario?: api.SandboxScenario;
}

/** In the iterators, timeoutMs is the time for each page. */
export interface PageOptions extends CallOptions {
  cursor?: string;
  /** Items per page, 1 to 100. */
  limit?: number;
}

export interface ListOptions extends PageOptions {
  externalId?: string;
  status?: api.Status;
}

export interface EventOptions extends PageOptions {
  /** How long the service waits when there is no event, 30 seconds at most. */
  waitSeconds?: number;
}

type Operation = (typeof operations)[keyof typeof operations];

/** What a request has besides its operation. */
interface Contents {
  ids?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: string;
  key?: string;
  waitSeconds?: number | undefined;
  scenario?: api.SandboxScenario | undefined;
  once?: boolean;
}

const maxRequestBytes = 1 << 20; // the API's own limit
const maxAnswerBytes = 64 << 20;
const maxOutcomeWaitSeconds = 20; // the longest waits that the service allows
const maxEventWaitSeconds = 30;
const maxTimerMs = 2 ** 31 - 1; // a longer timer would end at once
const firstPollWaitMs = 200;
const maxPollWaitMs = 5_000;

/** Reports whether a status is an outcome. `outcome_unknown` is none: the service finds out. */
export function isDecided(status: api.Status): boolean {
  return ["accepted", "accepted_conditional", "rejected", "delivered", "validation_failed"].includes(status);
}

/** Returns a random key. Store it with the invoice before you use it. */
export function newIdempotencyKey(): string {
  return randomHex("key_");
}

/** Sends requests for one taxpayer with one credential. */
export class Client {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #taxpayerId: string;
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    const base = new URL(options.baseUrl);
    if (!/^https?:$/.test(base.protocol) || base.username || base.password || base.search || base.hash) {
      throw new TypeError("baseUrl must be http or https, without user, query and fragment");
    }
    if (!/^[!-~]+$/.test(options.apiKey)) throw new TypeError("apiKey is empty or has invalid characters");
    const attempts = options.attempts ?? 5;
    const attemptTimeoutMs = options.attemptTimeoutMs ?? 60_000;
    if (!(attempts >= 1) || !(attemptTimeoutMs > 0)) throw new TypeError("attempts and attemptTimeoutMs must be positive");
    this.#base = base.href.replace(/\/+$/, "");
    this.#taxpayerId = uuid(options.taxpayerId, "taxpayerId");
    this.#headers = { Authorization: `Bearer ${options.apiKey}` };
    if (options.language) this.#headers["Accept-Language"] = options.language;
    this.#transport = {
      // The platform's fetch must not be called as a method of another object.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      attempts,
      attemptTimeoutMs: Math.min(attemptTimeoutMs, maxTimerMs),
    };
  }

  /** Makes the key and the body of a creation, and sends nothing. Store both, then call sendInvoice. */
  prepareInvoice(request: api.InvoiceRequest): PreparedRequest {
    return { idempotencyKey: newIdempotencyKey(), body: JSON.stringify(request) };
  }

  /**
   * Sends a prepared creation. After any failure, also after a crash, call it again with the
   * same values: the answer is that of the first request, and there is no second invoice.
   */
  async sendInvoice(prepared: PreparedRequest, options: InvoiceOptions = {}): Promise<Answer<api.Invoice>> {
    const { waitSeconds, scenario } = options;
    return this.#create<api.Invoice>(operations.createInvoice, prepared, options, { waitSeconds, scenario });
  }

  /** Registers an invoice. A created invoice is stored, not accepted: see waitForOutcome. */
  async createInvoice(request: api.InvoiceRequest, options: InvoiceOptions & KeyOptions): Promise<Answer<api.Invoice>> {
    return this.sendInvoice(await prepare(JSON.stringify(request), options), options);
  }

  async getInvoice(id: string, options: CallOptions & { waitSeconds?: number } = {}): Promise<Answer<api.Invoice>> {
    const { waitSeconds } = options;
    return this.#fetch<api.Invoice>(operations.getInvoice, { ids: { invoice_id: id }, waitSeconds }, options);
  }

  /**
   * Waits until the status of an invoice is decided. Bound the wait by timeoutMs or a signal: an
   * authority that is out of reach may decide only days later. When the time ends first it
   * throws a DeadlineError with the invoice as it was last seen.
   */
  async waitForOutcome(id: string, options: CallOptions = {}): Promise<Answer<api.Invoice>> {
    const { timeoutMs, signal } = options;
    const endsAt = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs;
    const longest = Math.min(maxOutcomeWaitSeconds, this.#transport.attemptTimeoutMs / 2000);
    let last: api.Invoice | undefined;
    for (let wait = firstPollWaitMs; ; wait = Math.min(2 * wait, maxPollWaitMs)) {
      try {
        const left = endsAt - performance.now();
        const one: CallOptions = { ...(signal && { signal }), ...(left !== Infinity && { timeoutMs: left }) };
        const answer = await this.getInvoice(id, { ...one, waitSeconds: Math.max(0, Math.min(longest, left / 1000)) });
        if (isDecided(answer.data.status)) return answer;
        last = answer.data;
        await pause(wait, endsAt, signal); // the service does not wait while it stops or is busy
      } catch (error) {
        if (!(error instanceof DeadlineError)) throw error;
        throw new DeadlineError(`invoice ${id} is ${last?.status ?? "not read"}: ${error.message}`, error, last);
      }
    }
  }

  /** Reads one page of invoices, newest first. */
  async listInvoices(options: ListOptions = {}): Promise<Answer<api.Invoice[]>> {
    const query = { ...pageQuery(options), external_id: options.externalId, status: options.status };
    return this.#fetch<api.Invoice[]>(operations.listInvoices, { query }, options);
  }

  /** Yields the invoices of every page of a list. */
  allInvoices(options: ListOptions = {}): AsyncGenerator<api.Invoice, void, void> {
    return everyPage(options, (one) => this.listInvoices(one));
  }

  /** Returns the fiscal document of the invoice with an external id; data is undefined without one. */
  async findDocument(externalId: string, options: CallOptions = {}): Promise<Answer<api.FiscalDocument | undefined>> {
    const found = await this.#fetch<api.FiscalDocument[]>(operations.searchFiscalDocuments, { query: { external_id: externalId } }, options);
    return { data: found.data[0], meta: found.meta };
  }

  async getDocument(id: string, options: CallOptions = {}): Promise<Answer<api.FiscalDocument>> {
    return this.#fetch<api.FiscalDocument>(operations.getFiscalDocument, { ids: { document_id: id } }, options);
  }

  /** Downloads the signed XML. It fails with `artifact_not_ready` while there is none. */
  async documentXml(id: string, options: CallOptions = {}): Promise<Answer<Uint8Array>> {
    return this.#file(operations.downloadFiscalDocumentXml, { ids: { document_id: id } }, options);
  }

  /** Downloads the printed page. It fails with `artifact_not_ready` while there is none. */
  async documentPdf(id: string, options: CallOptions & { format?: api.PageFormat } = {}): Promise<Answer<Uint8Array>> {
    return this.#file(operations.downloadFiscalDocumentPdf, { ids: { document_id: id }, query: { format: options.format } }, options);
  }

  /** Reads one page of the feed, oldest first. Use meta.nextCursor for the next one, also when it is empty. */
  async listEvents(options: EventOptions = {}): Promise<Answer<FiscalhubEvent[]>> {
    const query = { ...pageQuery(options), wait: wholeSeconds(options.waitSeconds) };
    return this.#fetch<FiscalhubEvent[]>(operations.listEvents, { query }, options);
  }

  /** Yields the events from a cursor up to the end of the feed, and ends there. */
  async *allEvents(options: EventOptions = {}): AsyncGenerator<FiscalhubEvent, void, void> {
    for (let one = options; ; ) {
      const page = await this.listEvents(one);
      yield* page.data;
      if (!page.meta.hasMore || page.meta.nextCursor === undefined) return;
      one = { ...one, cursor: page.meta.nextCursor };
    }
  }

  /**
   * Yields pages of events and waits for new ones. Store meta.nextCursor together with the
   * result of each page, so that a later call can continue there.
   */
  async *followEvents(options: EventOptions = {}): AsyncGenerator<Answer<FiscalhubEvent[]>, void, void> {
    const longest = Math.min(maxEventWaitSeconds, this.#transport.attemptTimeoutMs / 2000);
    for (let one = { waitSeconds: longest, ...options }; ; ) {
      const page = await this.listEvents(one);
      if (page.data.length > 0) yield page;
      else await pause(firstPollWaitMs, Infinity, options.signal); // a service that stops does not wait
      if (page.meta.nextCursor !== undefined) one = { ...one, cursor: page.meta.nextCursor };
    }
  }

  /** Adds an address that receives events. The answer has the secret that signs them. */
  async createWebhookEndpoint(request: api.WebhookEndpointRequest, options: CallOptions & KeyOptions): Promise<Answer<api.WebhookEndpointCreated>> {
    const prepared = await prepare(JSON.stringify(request), options);
    return this.#create<api.WebhookEndpointCreated>(operations.createWebhookEndpoint, prepared, options, {});
  }

  async getWebhookEndpoint(id: string, options: CallOptions = {}): Promise<Answer<api.WebhookEndpoint>> {
    return this.#fetch<api.WebhookEndpoint>(operations.getWebhookEndpoint, { ids: { endpoint_id: id } }, options);
  }

  async listWebhookEndpoints(options: PageOptions = {}): Promise<Answer<api.WebhookEndpoint[]>> {
    return this.#fetch<api.WebhookEndpoint[]>(operations.listWebhookEndpoints, { query: pageQuery(options) }, options);
  }

  allWebhookEndpoints(options: PageOptions = {}): AsyncGenerator<api.WebhookEndpoint, void, void> {
    return everyPage(options, (one) => this.listWebhookEndpoints(one));
  }

  async deleteWebhookEndpoint(id: string, options: CallOptions = {}): Promise<void> {
    await this.#send(operations.deleteWebhookEndpoint, { ids: { endpoint_id: id } }, options);
  }

  /** Gives an endpoint a new secret. It is not retried after a lost answer: that would rotate again. */
  async rotateWebhookSecret(id: string, options: CallOptions = {}): Promise<Answer<api.WebhookEndpointSecret>> {
    return this.#fetch<api.WebhookEndpointSecret>(operations.rotateWebhookEndpointSecret, { ids: { endpoint_id: id }, once: true }, options);
  }

  async enableWebhookEndpoint(id: string, options: CallOptions = {}): Promise<Answer<api.WebhookEndpoint>> {
    return this.#fetch<api.WebhookEndpoint>(operations.enableWebhookEndpoint, { ids: { endpoint_id: id } }, options);
  }

  /** Makes the service send one test event. */
  async testWebhookEndpoint(id: string, options: CallOptions = {}): Promise<Answer<api.WebhookTest>> {
    return this.#fetch<api.WebhookTest>(operations.testWebhookEndpoint, { ids: { endpoint_id: id }, once: true }, options);
  }

  /** Makes the service send events again: one, all since an instant, or all that failed. */
  async replayWebhookEvents(id: string, request: api.WebhookReplayRequest, options: CallOptions = {}): Promise<Answer<api.WebhookReplay>> {
    return this.#fetch<api.WebhookReplay>(operations.replayWebhookEvents, { ids: { endpoint_id: id }, body: JSON.stringify(request) }, options);
  }

  /** Reads one page of an endpoint's delivery attempts, newest first. */
  async listWebhookDeliveries(id: string, options: PageOptions = {}): Promise<Answer<api.WebhookDelivery[]>> {
    return this.#fetch<api.WebhookDelivery[]>(operations.listWebhookDeliveries, { ids: { endpoint_id: id }, query: pageQuery(options) }, options);
  }

  allWebhookDeliveries(id: string, options: PageOptions = {}): AsyncGenerator<api.WebhookDelivery, void, void> {
    return everyPage(options, (one) => this.listWebhookDeliveries(id, one));
  }

  async #create<T>(operation: Operation, prepared: PreparedRequest, options: CallOptions, contents: Contents): Promise<Answer<T>> {
    const key = prepared.idempotencyKey;
    if (!/^[!-~]([ -~]{0,198}[!-~])?$/.test(key)) throw new TypeError("the idempotency key must be 1 to 200 printable ASCII characters");
    const answer = await this.#fetch<T>(operation, { ...contents, body: prepared.body, key }, options);
    answer.meta.idempotencyKey = key;
    return answer;
  }

  async #fetch<T>(operation: Operation, contents: Contents, options: CallOptions): Promise<Answer<T>> {
    const raw = await this.#send(operation, contents, options);
    const envelope = JSON.parse(new TextDecoder().decode(raw.body)) as {
      data: T;
      meta: { request_id?: string; next_cursor?: string | null; has_more?: boolean };
    };
    const meta = metaOf(raw);
    if (envelope.meta.request_id) meta.originRequestId = envelope.meta.request_id;
    if (envelope.meta.next_cursor) meta.nextCursor = envelope.meta.next_cursor;
    if (envelope.meta.has_more !== undefined) meta.hasMore = envelope.meta.has_more;
    return { data: envelope.data, meta };
  }

  async #file(operation: Operation, contents: Contents, options: CallOptions): Promise<Answer<Uint8Array>> {
    const raw = await this.#send(operation, contents, options);
    return { data: raw.body, meta: metaOf(raw) };
  }

  async #send(operation: Operation, contents: Contents, options: CallOptions): Promise<RawAnswer> {
    const ids: Record<string, string> = { ...contents.ids, taxpayer_id: this.#taxpayerId };
    // Another text than a UUID could change the path of the request.
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => uuid(ids[name] ?? "", name));
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(contents.query ?? {})) {
      if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
    }
    const headers = { ...this.#headers };
    const body = contents.body === undefined ? undefined : new TextEncoder().encode(contents.body);
    if (body && body.length > maxRequestBytes) throw new RangeError(`the request has ${body.length} bytes, more than 1 MiB`);
    if (body) headers["Content-Type"] = "application/json";
    if (contents.key) headers["Idempotency-Key"] = contents.key;
    if (contents.waitSeconds !== undefined) headers["Prefer"] = `wait=${wholeSeconds(contents.waitSeconds)}`;
    if (contents.scenario) headers["Sandbox-Scenario"] = contents.scenario;
    return send(
      this.#transport,
      {
        method: operation.method,
        url: url.href,
        status: operation.status,
        headers,
        ...(body && { body }),
        limit: maxAnswerBytes,
        once: contents.once ?? false,
      },
      options,
    );
  }
}

async function prepare(body: string, options: KeyOptions): Promise<PreparedRequest> {
  if (options.idempotencyKey !== undefined) return { idempotencyKey: options.idempotencyKey, body };
  if (!options.onKey) throw new TypeError("give the idempotencyKey that you have stored, or onKey, which stores a new one");
  const prepared = { idempotencyKey: newIdempotencyKey(), body };
  await options.onKey({ ...prepared });
  return prepared;
}

async function* everyPage<T, O extends PageOptions>(options: O, read: (options: O) => Promise<Answer<T[]>>): AsyncGenerator<T, void, void> {
  for (let one = options; ; ) {
    const page = await read(one);
    yield* page.data;
    if (page.meta.nextCursor === undefined) return;
    one = { ...one, cursor: page.meta.nextCursor };
  }
}

function metaOf(raw: RawAnswer): AnswerMeta {
  const requestId = raw.headers.get("X-Request-Id") ?? "";
  const location = raw.headers.get("Location");
  return {
    requestId,
    originRequestId: requestId,
    replayed: raw.headers.get("Idempotency-Replayed") === "true",
    ...(location && { location }),
  };
}

function pageQuery(options: PageOptions): Record<string, string | number | undefined> {
  return { cursor: options.cursor, limit: options.limit };
}

/** Rounds up, so that a short wait does not become no wait. */
function wholeSeconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.ceil(Math.max(seconds, 0));
}

function uuid(text: string, name: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) throw new TypeError(`${name} ${JSON.stringify(text)} is not a UUID`);
  return text;
}
