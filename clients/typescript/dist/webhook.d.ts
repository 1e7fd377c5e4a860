import type { EventFeed, FiscalEvent } from "./api.js";
/**
 * An event of the service. The feed and the webhooks have the same events. The service may
 * add kinds: ignore the ones that you do not know.
 */
export type FiscalhubEvent = EventFeed["data"][number];
/** Headers of a request: those of fetch, or those of Node's http module. */
export type WebhookHeaders = {
    get(name: string): string | null;
} | Record<string, string | string[] | undefined>;
export interface VerifyOptions {
    /** How far the time of the message may be from now. The default is 300 seconds. */
    toleranceSeconds?: number;
    /** The time now, in milliseconds. The default is the clock of the machine. */
    now?: () => number;
}
/**
 * Checks that the service has signed a message with one of the secrets, within the last five
 * minutes, and returns its event. The body must be the bytes as they arrived: verify before
 * you parse. After a rotation pass the old and the new secret for a day.
 *
 * It throws a WebhookError, and another error when a secret is malformed or the signed body
 * is no JSON.
 */
export declare function verifyWebhook(headers: WebhookHeaders, body: Uint8Array | ArrayBuffer | string, secrets: string | string[], options?: VerifyOptions): Promise<FiscalhubEvent>;
/** Reports whether an event is about a fiscal document, and gives its data a type. */
export declare function isFiscalEvent(event: FiscalhubEvent): event is FiscalEvent;
