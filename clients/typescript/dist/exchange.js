import { ApiError, ConnectionError, DeadlineError } from "./errors.js";
const firstWaitMs = 200;
const lastWaitMs = 10_000;
const maxErrorBytes = 1 << 20;
// A service that asks for a longer wait will not be back in time for the caller.
const maxRetryAfterSeconds = 120;
/** Sends a call until it succeeds or fails for good, no attempt is left, or the time ends. */
export async function send(transport, call, options) {
    const endsAt = options.timeoutMs === undefined ? Infinity : performance.now() + options.timeoutMs;
    for (let attempt = 1;; attempt++) {
        try {
            return await sendOnce(transport, call, endsAt, options.signal);
        }
        catch (error) {
            const again = call.once ? error instanceof ApiError && error.status === 429 : isTemporary(error);
            if (!again || attempt >= transport.attempts)
                throw error;
            await pause(waitBefore(error, attempt), endsAt, options.signal, error);
        }
    }
}
async function sendOnce(transport, call, endsAt, signal) {
    signal?.throwIfAborted();
    const requestId = randomHex("req_");
    const controller = new AbortController();
    const abort = () => controller.abort();
    const left = endsAt - performance.now();
    if (left <= 0)
        throw new DeadlineError(`the time ended before an answer [${requestId}]`);
    const timer = setTimeout(abort, Math.min(left, transport.attemptTimeoutMs));
    signal?.addEventListener("abort", abort, { once: true });
    try {
        const response = await transport.fetch(call.url, {
            method: call.method,
            headers: { ...call.headers, "X-Request-Id": requestId },
            body: call.body ?? null,
            redirect: "manual", // the API has none, and the credential must not reach another host
            signal: controller.signal,
        });
        if (response.status !== call.status) {
            const text = new TextDecoder().decode(await readBody(response, maxErrorBytes));
            throw new ApiError(response.status, response.headers, text);
        }
        return { headers: response.headers, body: await readBody(response, call.limit) };
    }
    catch (error) {
        if (error instanceof ApiError || error instanceof RangeError)
            throw error;
        signal?.throwIfAborted();
        if (performance.now() >= endsAt)
            throw new DeadlineError(`the time ended before an answer [${requestId}]`, error);
        throw new ConnectionError(requestId, error);
    }
    finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
    }
}
/** Reads an answer. It throws a RangeError when the answer is over the limit. */
async function readBody(response, limit) {
    const parts = [];
    let size = 0;
    const reader = response.body?.getReader();
    for (;;) {
        const part = await reader?.read();
        if (!part || part.done)
            break;
        size += part.value.length;
        if (size > limit) {
            await reader?.cancel();
            throw new RangeError(`the answer is over ${limit} bytes`);
        }
        parts.push(part.value);
    }
    const all = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
        all.set(part, at);
        at += part.length;
    }
    return all;
}
/** Reports whether the same request may succeed later. */
function isTemporary(error) {
    if (error instanceof ApiError) {
        return (error.status === 429 || error.status === 503) && (error.retryAfterSeconds ?? 0) <= maxRetryAfterSeconds;
    }
    return error instanceof ConnectionError && !isUntrusted(error.cause);
}
/** Reports whether the certificate of the server is not trusted: a retry changes nothing. */
function isUntrusted(error) {
    const cause = error instanceof Error ? error.cause : undefined;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    return /CERT|SELF_SIGNED|VERIFY/.test(code);
}
/**
 * How long to wait before the next attempt. Half of the wait is random, so that the clients
 * do not all return at the same time after an outage.
 */
function waitBefore(error, attempt) {
    if (error instanceof ApiError && error.retryAfterSeconds) {
        const asked = error.retryAfterSeconds * 1000;
        return asked + Math.random() * Math.max(asked / 10, firstWaitMs);
    }
    const wait = Math.min(firstWaitMs * 2 ** Math.min(attempt - 1, 16), lastWaitMs);
    return wait / 2 + Math.random() * (wait / 2);
}
/** Waits. It fails at once when the time of the caller would end first. */
export async function pause(ms, endsAt, signal, last) {
    signal?.throwIfAborted();
    if (performance.now() + ms >= endsAt)
        throw new DeadlineError("the time ended before a success", last);
    await new Promise((resolve, reject) => {
        const end = () => {
            clearTimeout(timer);
            reject(signal?.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", end);
            resolve();
        }, ms);
        signal?.addEventListener("abort", end, { once: true });
    });
}
/** A prefix and 128 random bits. */
export function randomHex(prefix) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return prefix + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
