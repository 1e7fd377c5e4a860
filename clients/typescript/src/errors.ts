import type { ErrorAnswer, ErrorCode, ErrorDetail, Invoice } from "./api.js";

/** An answer that is not a success. Decide by its `code`, show its `message` to people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
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

  constructor(status: number, headers: Headers, body: string) {
    let error: Partial<ErrorAnswer["error"]> = {};
    try {
      error = (JSON.parse(body) as ErrorAnswer).error ?? {};
    } catch {
      // The answer of a proxy has another body. Its status is the message.
    }
    const details = error.details ?? [];
    const first = details[0];
    const requestId = error.request_id ?? headers.get("X-Request-Id") ?? "";
    super(
      `answer ${status} ${error.code ?? ""}: ${error.message ?? "no message"}` +
        (first ? ` (${first.field}: ${first.message}; ${details.length} in all)` : "") +
        (requestId && ` [${requestId}]`),
    );
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
  override readonly name = "ConnectionError";
  readonly requestId: string;

  constructor(requestId: string, cause: unknown) {
    super(`no answer [${requestId}]: ${reasonOf(cause)}`, { cause });
    this.requestId = requestId;
  }
}

/**
 * The time that the caller gave has ended. As after a ConnectionError, the service may have
 * received the request. `cause` is the last failure before, if there was one.
 */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
  /** The invoice as it was last seen, from `waitForOutcome`. It continues without you. */
  readonly invoice: Invoice | undefined;

  constructor(message: string, cause?: unknown, invoice?: Invoice) {
    super(message, { cause });
    this.invoice = invoice;
  }
}

/** Why a webhook message was refused. Answer 401, and do not say which reason it was. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
  readonly reason: "headers" | "signature" | "time";

  constructor(reason: "headers" | "signature" | "time", message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The message of an error and of its cause: fetch puts the reason into the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
