import type * as api from "./api.js";
import type { CallOptions } from "./exchange.js";
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
export type KeyOptions = {
    idempotencyKey: string;
    onKey?: never;
} | {
    onKey: (prepared: PreparedRequest) => void | Promise<void>;
    idempotencyKey?: never;
};
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
/** Reports whether a status is an outcome. `outcome_unknown` is none: the service finds out. */
export declare function isDecided(status: api.Status): boolean;
/** Returns a random key. Store it with the invoice before you use it. */
export declare function newIdempotencyKey(): string;
/** Sends requests for one taxpayer with one credential. */
export declare class Client {
    #private;
    constructor(options: ClientOptions);
    /** Makes the key and the body of a creation, and sends nothing. Store both, then call sendInvoice. */
    prepareInvoice(request: api.InvoiceRequest): PreparedRequest;
    /**
     * Sends a prepared creation. After any failure, also after a crash, call it again with the
     * same values: the answer is that of the first request, and there is no second invoice.
     */
    sendInvoice(prepared: PreparedRequest, options?: InvoiceOptions): Promise<Answer<api.Invoice>>;
    /** Registers an invoice. A created invoice is stored, not accepted: see waitForOutcome. */
    createInvoice(request: api.InvoiceRequest, options: InvoiceOptions & KeyOptions): Promise<Answer<api.Invoice>>;
    getInvoice(id: string, options?: CallOptions & {
        waitSeconds?: number;
    }): Promise<Answer<api.Invoice>>;
    /**
     * Waits until the status of an invoice is decided. Bound the wait by timeoutMs or a signal: an
     * authority that is out of reach may decide only days later. When the time ends first it
     * throws a DeadlineError with the invoice as it was last seen.
     */
    waitForOutcome(id: string, options?: CallOptions): Promise<Answer<api.Invoice>>;
    /** Reads one page of invoices, newest first. */
    listInvoices(options?: ListOptions): Promise<Answer<api.Invoice[]>>;
    /** Yields the invoices of every page of a list. */
    allInvoices(options?: ListOptions): AsyncGenerator<api.Invoice, void, void>;
    /** Returns the fiscal document of the invoice with an external id; data is undefined without one. */
    findDocument(externalId: string, options?: CallOptions): Promise<Answer<api.FiscalDocument | undefined>>;
    getDocument(id: string, options?: CallOptions): Promise<Answer<api.FiscalDocument>>;
    /** Downloads the signed XML. It fails with `artifact_not_ready` while there is none. */
    documentXml(id: string, options?: CallOptions): Promise<Answer<Uint8Array>>;
    /** Downloads the printed page. It fails with `artifact_not_ready` while there is none. */
    documentPdf(id: string, options?: CallOptions & {
        format?: api.PageFormat;
    }): Promise<Answer<Uint8Array>>;
    /** Reads one page of the feed, oldest first. Use meta.nextCursor for the next one, also when it is empty. */
    listEvents(options?: EventOptions): Promise<Answer<FiscalhubEvent[]>>;
    /** Yields the events from a cursor up to the end of the feed, and ends there. */
    allEvents(options?: EventOptions): AsyncGenerator<FiscalhubEvent, void, void>;
    /**
     * Yields pages of events and waits for new ones. Store meta.nextCursor together with the
     * result of each page, so that a later call can continue there.
     */
    followEvents(options?: EventOptions): AsyncGenerator<Answer<FiscalhubEvent[]>, void, void>;
    /** Adds an address that receives events. The answer has the secret that signs them. */
    createWebhookEndpoint(request: api.WebhookEndpointRequest, options: CallOptions & KeyOptions): Promise<Answer<api.WebhookEndpointCreated>>;
    getWebhookEndpoint(id: string, options?: CallOptions): Promise<Answer<api.WebhookEndpoint>>;
    listWebhookEndpoints(options?: PageOptions): Promise<Answer<api.WebhookEndpoint[]>>;
    allWebhookEndpoints(options?: PageOptions): AsyncGenerator<api.WebhookEndpoint, void, void>;
    deleteWebhookEndpoint(id: string, options?: CallOptions): Promise<void>;
    /** Gives an endpoint a new secret. It is not retried after a lost answer: that would rotate again. */
    rotateWebhookSecret(id: string, options?: CallOptions): Promise<Answer<api.WebhookEndpointSecret>>;
    enableWebhookEndpoint(id: string, options?: CallOptions): Promise<Answer<api.WebhookEndpoint>>;
    /** Makes the service send one test event. */
    testWebhookEndpoint(id: string, options?: CallOptions): Promise<Answer<api.WebhookTest>>;
    /** Makes the service send events again: one, all since an instant, or all that failed. */
    replayWebhookEvents(id: string, request: api.WebhookReplayRequest, options?: CallOptions): Promise<Answer<api.WebhookReplay>>;
    /** Reads one page of an endpoint's delivery attempts, newest first. */
    listWebhookDeliveries(id: string, options?: PageOptions): Promise<Answer<api.WebhookDelivery[]>>;
    allWebhookDeliveries(id: string, options?: PageOptions): AsyncGenerator<api.WebhookDelivery, void, void>;
}
