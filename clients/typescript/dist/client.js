import { operations } from "./api.js";
import { DeadlineError } from "./errors.js";
import { pause, randomHex, send } from "./exchange.js";
const maxRequestBytes = 1 << 20; // the API's own limit
const maxAnswerBytes = 64 << 20;
const maxOutcomeWaitSeconds = 20; // the longest waits that the service allows
const maxEventWaitSeconds = 30;
const maxTimerMs = 2 ** 31 - 1; // a longer timer would end at once
const firstPollWaitMs = 200;
const maxPollWaitMs = 5_000;
/** Reports whether a status is an outcome. `outcome_unknown` is none: the service finds out. */
export function isDecided(status) {
    return ["accepted", "accepted_conditional", "rejected", "delivered", "validation_failed"].includes(status);
}
/** Returns a random key. Store it with the invoice before you use it. */
export function newIdempotencyKey() {
    return randomHex("key_");
}
/** Sends requests for one taxpayer with one credential. */
export class Client {
    #base;
    #headers;
    #taxpayerId;
    #transport;
    constructor(options) {
        const base = new URL(options.baseUrl);
        if (!/^https?:$/.test(base.protocol) || base.username || base.password || base.search || base.hash) {
            throw new TypeError("baseUrl must be http or https, without user, query and fragment");
        }
        if (!/^[!-~]+$/.test(options.apiKey))
            throw new TypeError("apiKey is empty or has invalid characters");
        const attempts = options.attempts ?? 5;
        const attemptTimeoutMs = options.attemptTimeoutMs ?? 60_000;
        if (!(attempts >= 1) || !(attemptTimeoutMs > 0))
            throw new TypeError("attempts and attemptTimeoutMs must be positive");
        this.#base = base.href.replace(/\/+$/, "");
        this.#taxpayerId = uuid(options.taxpayerId, "taxpayerId");
        this.#headers = { Authorization: `Bearer ${options.apiKey}` };
        if (options.language)
            this.#headers["Accept-Language"] = options.language;
        this.#transport = {
            // The platform's fetch must not be called as a method of another object.
            fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
            attempts,
            attemptTimeoutMs: Math.min(attemptTimeoutMs, maxTimerMs),
        };
    }
    /** Makes the key and the body of a creation, and sends nothing. Store both, then call sendInvoice. */
    prepareInvoice(request) {
        return { idempotencyKey: newIdempotencyKey(), body: JSON.stringify(request) };
    }
    /**
     * Sends a prepared creation. After any failure, also after a crash, call it again with the
     * same values: the answer is that of the first request, and there is no second invoice.
     */
    async sendInvoice(prepared, options = {}) {
        const { waitSeconds, scenario } = options;
        return this.#create(operations.createInvoice, prepared, options, { waitSeconds, scenario });
    }
    /** Registers an invoice. A created invoice is stored, not accepted: see waitForOutcome. */
    async createInvoice(request, options) {
        return this.sendInvoice(await prepare(JSON.stringify(request), options), options);
    }
    async getInvoice(id, options = {}) {
        const { waitSeconds } = options;
        return this.#fetch(operations.getInvoice, { ids: { invoice_id: id }, waitSeconds }, options);
    }
    /**
     * Waits until the status of an invoice is decided. Bound the wait by timeoutMs or a signal: an
     * authority that is out of reach may decide only days later. When the time ends first it
     * throws a DeadlineError with the invoice as it was last seen.
     */
    async waitForOutcome(id, options = {}) {
        const { timeoutMs, signal } = options;
        const endsAt = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs;
        const longest = Math.min(maxOutcomeWaitSeconds, this.#transport.attemptTimeoutMs / 2000);
        let last;
        for (let wait = firstPollWaitMs;; wait = Math.min(2 * wait, maxPollWaitMs)) {
            try {
                const left = endsAt - performance.now();
                const one = { ...(signal && { signal }), ...(left !== Infinity && { timeoutMs: left }) };
                const answer = await this.getInvoice(id, { ...one, waitSeconds: Math.max(0, Math.min(longest, left / 1000)) });
                if (isDecided(answer.data.status))
                    return answer;
                last = answer.data;
                await pause(wait, endsAt, signal); // the service does not wait while it stops or is busy
            }
            catch (error) {
                if (!(error instanceof DeadlineError))
                    throw error;
                throw new DeadlineError(`invoice ${id} is ${last?.status ?? "not read"}: ${error.message}`, error, last);
            }
        }
    }
    /** Reads one page of invoices, newest first. */
    async listInvoices(options = {}) {
        const query = { ...pageQuery(options), external_id: options.externalId, status: options.status };
        return this.#fetch(operations.listInvoices, { query }, options);
    }
    /** Yields the invoices of every page of a list. */
    allInvoices(options = {}) {
        return everyPage(options, (one) => this.listInvoices(one));
    }
    /** Returns the fiscal document of the invoice with an external id; data is undefined without one. */
    async findDocument(externalId, options = {}) {
        const found = await this.#fetch(operations.searchFiscalDocuments, { query: { external_id: externalId } }, options);
        return { data: found.data[0], meta: found.meta };
    }
    async getDocument(id, options = {}) {
        return this.#fetch(operations.getFiscalDocument, { ids: { document_id: id } }, options);
    }
    /** Downloads the signed XML. It fails with `artifact_not_ready` while there is none. */
    async documentXml(id, options = {}) {
        return this.#file(operations.downloadFiscalDocumentXml, { ids: { document_id: id } }, options);
    }
    /** Downloads the printed page. It fails with `artifact_not_ready` while there is none. */
    async documentPdf(id, options = {}) {
        return this.#file(operations.downloadFiscalDocumentPdf, { ids: { document_id: id }, query: { format: options.format } }, options);
    }
    /** Reads one page of the feed, oldest first. Use meta.nextCursor for the next one, also when it is empty. */
    async listEvents(options = {}) {
        const query = { ...pageQuery(options), wait: wholeSeconds(options.waitSeconds) };
        return this.#fetch(operations.listEvents, { query }, options);
    }
    /** Yields the events from a cursor up to the end of the feed, and ends there. */
    async *allEvents(options = {}) {
        for (let one = options;;) {
            const page = await this.listEvents(one);
            yield* page.data;
            if (!page.meta.hasMore || page.meta.nextCursor === undefined)
                return;
            one = { ...one, cursor: page.meta.nextCursor };
        }
    }
    /**
     * Yields pages of events and waits for new ones. Store meta.nextCursor together with the
     * result of each page, so that a later call can continue there.
     */
    async *followEvents(options = {}) {
        const longest = Math.min(maxEventWaitSeconds, this.#transport.attemptTimeoutMs / 2000);
        for (let one = { waitSeconds: longest, ...options };;) {
            const page = await this.listEvents(one);
            if (page.data.length > 0)
                yield page;
            else
                await pause(firstPollWaitMs, Infinity, options.signal); // a service that stops does not wait
            if (page.meta.nextCursor !== undefined)
                one = { ...one, cursor: page.meta.nextCursor };
        }
    }
    /** Adds an address that receives events. The answer has the secret that signs them. */
    async createWebhookEndpoint(request, options) {
        const prepared = await prepare(JSON.stringify(request), options);
        return this.#create(operations.createWebhookEndpoint, prepared, options, {});
    }
    async getWebhookEndpoint(id, options = {}) {
        return this.#fetch(operations.getWebhookEndpoint, { ids: { endpoint_id: id } }, options);
    }
    async listWebhookEndpoints(options = {}) {
        return this.#fetch(operations.listWebhookEndpoints, { query: pageQuery(options) }, options);
    }
    allWebhookEndpoints(options = {}) {
        return everyPage(options, (one) => this.listWebhookEndpoints(one));
    }
    async deleteWebhookEndpoint(id, options = {}) {
        await this.#send(operations.deleteWebhookEndpoint, { ids: { endpoint_id: id } }, options);
    }
    /** Gives an endpoint a new secret. It is not retried after a lost answer: that would rotate again. */
    async rotateWebhookSecret(id, options = {}) {
        return this.#fetch(operations.rotateWebhookEndpointSecret, { ids: { endpoint_id: id }, once: true }, options);
    }
    async enableWebhookEndpoint(id, options = {}) {
        return this.#fetch(operations.enableWebhookEndpoint, { ids: { endpoint_id: id } }, options);
    }
    /** Makes the service send one test event. */
    async testWebhookEndpoint(id, options = {}) {
        return this.#fetch(operations.testWebhookEndpoint, { ids: { endpoint_id: id }, once: true }, options);
    }
    /** Makes the service send events again: one, all since an instant, or all that failed. */
    async replayWebhookEvents(id, request, options = {}) {
        return this.#fetch(operations.replayWebhookEvents, { ids: { endpoint_id: id }, body: JSON.stringify(request) }, options);
    }
    /** Reads one page of an endpoint's delivery attempts, newest first. */
    async listWebhookDeliveries(id, options = {}) {
        return this.#fetch(operations.listWebhookDeliveries, { ids: { endpoint_id: id }, query: pageQuery(options) }, options);
    }
    allWebhookDeliveries(id, options = {}) {
        return everyPage(options, (one) => this.listWebhookDeliveries(id, one));
    }
    async #create(operation, prepared, options, contents) {
        const key = prepared.idempotencyKey;
        if (!/^[!-~]([ -~]{0,198}[!-~])?$/.test(key))
            throw new TypeError("the idempotency key must be 1 to 200 printable ASCII characters");
        const answer = await this.#fetch(operation, { ...contents, body: prepared.body, key }, options);
        answer.meta.idempotencyKey = key;
        return answer;
    }
    async #fetch(operation, contents, options) {
        const raw = await this.#send(operation, contents, options);
        const envelope = JSON.parse(new TextDecoder().decode(raw.body));
        const meta = metaOf(raw);
        if (envelope.meta.request_id)
            meta.originRequestId = envelope.meta.request_id;
        if (envelope.meta.next_cursor)
            meta.nextCursor = envelope.meta.next_cursor;
        if (envelope.meta.has_more !== undefined)
            meta.hasMore = envelope.meta.has_more;
        return { data: envelope.data, meta };
    }
    async #file(operation, contents, options) {
        const raw = await this.#send(operation, contents, options);
        return { data: raw.body, meta: metaOf(raw) };
    }
    async #send(operation, contents, options) {
        const ids = { ...contents.ids, taxpayer_id: this.#taxpayerId };
        // Another text than a UUID could change the path of the request.
        const path = operation.path.replace(/\{(\w+)\}/g, (_, name) => uuid(ids[name] ?? "", name));
        const url = new URL(this.#base + path);
        for (const [name, value] of Object.entries(contents.query ?? {})) {
            if (value !== undefined && value !== "")
                url.searchParams.set(name, String(value));
        }
        const headers = { ...this.#headers };
        const body = contents.body === undefined ? undefined : new TextEncoder().encode(contents.body);
        if (body && body.length > maxRequestBytes)
            throw new RangeError(`the request has ${body.length} bytes, more than 1 MiB`);
        if (body)
            headers["Content-Type"] = "application/json";
        if (contents.key)
            headers["Idempotency-Key"] = contents.key;
        if (contents.waitSeconds !== undefined)
            headers["Prefer"] = `wait=${wholeSeconds(contents.waitSeconds)}`;
        if (contents.scenario)
            headers["Sandbox-Scenario"] = contents.scenario;
        return send(this.#transport, {
            method: operation.method,
            url: url.href,
            status: operation.status,
            headers,
            ...(body && { body }),
            limit: maxAnswerBytes,
            once: contents.once ?? false,
        }, options);
    }
}
async function prepare(body, options) {
    if (options.idempotencyKey !== undefined)
        return { idempotencyKey: options.idempotencyKey, body };
    if (!options.onKey)
        throw new TypeError("give the idempotencyKey that you have stored, or onKey, which stores a new one");
    const prepared = { idempotencyKey: newIdempotencyKey(), body };
    await options.onKey({ ...prepared });
    return prepared;
}
async function* everyPage(options, read) {
    for (let one = options;;) {
        const page = await read(one);
        yield* page.data;
        if (page.meta.nextCursor === undefined)
            return;
        one = { ...one, cursor: page.meta.nextCursor };
    }
}
function metaOf(raw) {
    const requestId = raw.headers.get("X-Request-Id") ?? "";
    const location = raw.headers.get("Location");
    return {
        requestId,
        originRequestId: requestId,
        replayed: raw.headers.get("Idempotency-Replayed") === "true",
        ...(location && { location }),
    };
}
function pageQuery(options) {
    return { cursor: options.cursor, limit: options.limit };
}
/** Rounds up, so that a short wait does not become no wait. */
function wholeSeconds(seconds) {
    return seconds === undefined ? undefined : Math.ceil(Math.max(seconds, 0));
}
function uuid(text, name) {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
        throw new TypeError(`${name} ${JSON.stringify(text)} is not a UUID`);
    return text;
}
