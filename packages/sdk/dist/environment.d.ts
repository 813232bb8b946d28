import type { WebSocketConstructor } from './hub-connection.js';
/** An environment variable, on platforms that have them. */
export declare function environment(name: string): string | undefined;
/**
 * The User-Agent of this library, so that owners see which client used their key. Browsers send their own; another
 * header would cause a CORS preflight for each call.
 */
export declare function userAgent(): Record<string, string>;
/** The service's origin. Throws an error with an example if the URL is invalid. */
export declare function serviceOrigin(url: string | undefined): string;
/** The platform's WebSocket. Throws an error that says where to get one. */
export declare function platformWebSocket(): WebSocketConstructor;
/** Random, URL-safe, 128 bits: `crypto.randomUUID` is missing on pages served over plain http. */
export declare function randomId(): string;
export declare function hex(bytes: Uint8Array): string;
/** Calls back once when the signal aborts, or soon if it has aborted. Returns a function that removes the listener. */
export declare function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void;
