/** An answer that is not a success. Decide by its `code`, show its `message` to people. */
export class ApiError extends Error {
    name = "ApiError";
    status;
    /** Undefined when a proxy answered, and not the service. */
    code;
    /** Identifies the request. Store it: support needs it. */
    requestId;
    /** The problems of the request, each with its field. */
    details;
    /** How many seconds to wait before another try; undefined when the answer does not say. */
    retryAfterSeconds;
    /** The path of the invoice that already has the external id, with `external_id_conflict`. */
    location;
    constructor(status, headers, body) {
        let error = {};
        try {
            error = JSON.parse(body).error ?? {};
        }
        catch {
            // The answer of a proxy has another body. Its status is the message.
        }
        const details = error.details ?? [];
        const first = details[0];
        const requestId = error.request_id ?? headers.get("X-Request-Id") ?? "";
        super(`answer ${status} ${error.code ?? ""}: ${error.message ?? "no message"}` +
            (first ? ` (${first.field}: ${first.message}; ${details.length} in all)` : "") +
            (requestId && ` [${requestId}]`));
        this.status = status;
        this.code = error.code;
        this.requestId = requestId;
        this.details = details;
        const seconds = headers.get("Retry-After") ?? "";
        this.retryAfterSeconds = /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) : undefined;
        this.location = headers.get("Location") ?? undefined;
    }
}
/**
 * No complete answer arrived. The service may have received the request: send a creation
 * again with the same key and the same body.
 */
export class ConnectionError extends Error {
    name = "ConnectionError";
    requestId;
    constructor(requestId, cause) {
        super(`no answer [${requestId}]: ${reasonOf(cause)}`, { cause });
        this.requestId = requestId;
    }
}
/**
 * The time that the caller gave has ended. As after a ConnectionError, the service may have
 * received the request. `cause` is the last failure before, if there was one.
 */
export class DeadlineError extends Error {
    name = "DeadlineError";
    /** The invoice as it was last seen, from `waitForOutcome`. It continues without you. */
    invoice;
    constructor(message, cause, invoice) {
        super(message, { cause });
        this.invoice = invoice;
    }
}
/** Why a webhook message was refused. Answer 401, and do not say which reason it was. */
export class WebhookError extends Error {
    name = "WebhookError";
    reason;
    constructor(reason, message) {
        super(message);
        this.reason = reason;
    }
}
/** The message of an error and of its cause: fetch puts the reason into the cause. */
function reasonOf(error) {
    if (!(error instanceof Error))
        return String(error);
    return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
