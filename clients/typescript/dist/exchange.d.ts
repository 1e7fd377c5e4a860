/** Ends a call early. */
export interface CallOptions {
    /** How long the call may take, with all its retries. Without it, the attempts bound it. */
    timeoutMs?: number;
    /** Ends the call with the reason of the signal. */
    signal?: AbortSignal;
}
/** One request of the API, which may be sent several times with the same bytes. */
export interface Call {
    method: string;
    url: string;
    status: number;
    headers: Record<string, string>;
    body?: Uint8Array;
    limit: number;
    once?: boolean;
}
/** A complete HTTP answer. */
export interface RawAnswer {
    headers: Headers;
    body: Uint8Array;
}
export interface Transport {
    fetch: typeof globalThis.fetch;
    attempts: number;
    attemptTimeoutMs: number;
}
/** Sends a call until it succeeds or fails for good, no attempt is left, or the time ends. */
export declare function send(transport: Transport, call: Call, options: CallOptions): Promise<RawAnswer>;
/** Waits. It fails at once when the time of the caller would end first. */
export declare function pause(ms: number, endsAt: number, signal: AbortSignal | undefined, last?: unknown): Promise<void>;
/** A prefix and 128 random bits. */
export declare function randomHex(prefix: string): string;
