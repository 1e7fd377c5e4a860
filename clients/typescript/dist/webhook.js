import { WebhookError } from "./errors.js";
const limits = { "webhook-id": 256, "webhook-timestamp": 12, "webhook-signature": 2048 };
/**
 * Checks that the service has signed a message with one of the secrets, within the last five
 * minutes, and returns its event. The body must be the bytes as they arrived: verify before
 * you parse. After a rotation pass the old and the new secret for a day.
 *
 * It throws a WebhookError, and another error when a secret is malformed or the signed body
 * is no JSON.
 */
export async function verifyWebhook(headers, body, secrets, options = {}) {
    const id = onlyValue(headers, "webhook-id");
    const timestamp = onlyValue(headers, "webhook-timestamp");
    const signatures = onlyValue(headers, "webhook-signature");
    if (!/^(0|[1-9][0-9]*)$/.test(timestamp))
        throw new WebhookError("headers", "webhook-timestamp is no number of seconds");
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
    const head = new TextEncoder().encode(`${id}.${timestamp}.`);
    const signed = new Uint8Array(head.length + bytes.length);
    signed.set(head);
    signed.set(bytes, head.length);
    if (!(await isSigned(signatures, signed, typeof secrets === "string" ? [secrets] : secrets))) {
        throw new WebhookError("signature", "none of the secrets has signed the webhook message");
    }
    // The time comes last, so that only a sender who knows a secret can learn about the clock.
    const now = options.now?.() ?? Date.now();
    if (Math.abs(now - Number(timestamp) * 1000) > (options.toleranceSeconds ?? 300) * 1000) {
        throw new WebhookError("time", "the time of the webhook message is too far from now");
    }
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
}
/** Reports whether an event is about a fiscal document, and gives its data a type. */
export function isFiscalEvent(event) {
    return event.data.object === "fiscal_document" || event.data.object === "invoice";
}
/** Reports whether one of the secrets has made one of the signatures. It tries all of them. */
async function isSigned(signatures, signed, secrets) {
    const given = signatures
        .split(" ")
        .filter((s) => s.startsWith("v1,")) // others are of another version
        .map((s) => fromBase64(s.slice(3)))
        .filter((s) => s !== undefined);
    let found = false;
    for (const secret of secrets) {
        const raw = fromBase64(secret.replace(/^whsec_/, ""));
        if (!raw?.length)
            throw new TypeError("a webhook secret is empty or malformed; use it as the service has shown it, with whsec_");
        const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
        for (const signature of given) {
            if (await crypto.subtle.verify("HMAC", key, signature, signed))
                found = true;
        }
    }
    return found;
}
/** Returns the value of a header that occurs exactly once. */
function onlyValue(headers, name) {
    let value;
    if (typeof headers.get === "function") {
        value = headers.get(name);
    }
    else {
        const values = Object.entries(headers).filter(([other]) => other.toLowerCase() === name);
        value = values.length === 1 ? values[0]?.[1] : undefined;
    }
    if (Array.isArray(value))
        value = value.length === 1 ? value[0] : undefined;
    if (!value || value.length > limits[name])
        throw new WebhookError("headers", `the header ${name} is missing or malformed`);
    return value;
}
function fromBase64(text) {
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text))
        return undefined;
    try {
        return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    }
    catch {
        return undefined;
    }
}
