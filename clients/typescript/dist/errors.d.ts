import type { ErrorCode, ErrorDetail, Invoice } from "./api.js";
/** An answer that is not a success. Decide by its `code`, show its `message` to people. */
export declare class ApiError extends Error {
    readonly name = "ApiError";
    readonly status: number;
    /** Undefined when a proxy answered, and not the service. */
    readonly code: ErrorCode | undefined;
    /** Identifies the request. Store it: support needs it. */
    readonly requestId: string;
    /** The problems of the request, each with its field. */
    readonly details: ErrorDetail[];
    /** How many seconds to wait before another try; undefined when the answer does not say. */
    readonly retryAfterSeconds: number | undefined;
    /** The path of the invoice that already has the external id, with `external_id_conflict`. */
    readonly location: string | undefined;
    constructor(status: number, headers: Headers, body: string);
}
/**
 * No complete answer arrived. The service may have received the request: send a creation
 * again with the same key and the same body.
 */
export declare class ConnectionError extends Error {
    readonly name = "ConnectionError";
    readonly requestId: string;
    constructor(requestId: string, cause: unknown);
}
/**
 * The time that the caller gave has ended. As after a ConnectionError, the service may have
 * received the request. `cause` is the last failure before, if there was one.
 */
export declare class DeadlineError extends Error {
    readonly name = "DeadlineError";
    /** The invoice as it was last seen, from `waitForOutcome`. It continues without you. */
    readonly invoice: Invoice | undefined;
    constructor(message: string, cause?: unknown, invoice?: Invoice);
}
/** Why a webhook message was refused. Answer 401, and do not say which reason it was. */
export declare class WebhookError extends Error {
    readonly name = "WebhookError";
    readonly reason: "headers" | "signature" | "time";
    constructor(reason: "headers" | "signature" | "time", message: string);
}
