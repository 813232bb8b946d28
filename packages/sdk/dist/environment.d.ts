import type { WebSocketConstructor } from './hub-connection.js';
/** The value of an environment variable; undefined on platforms without environment variables. */
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
/** A random URL-safe id of 128 bits. Does not use `crypto.randomUUID`, which pages served over plain http lack. */
export declare function randomId(): string;
export declare function hex(bytes: Uint8Array): string;
/** Calls back once when the signal aborts, or soon if it has aborted. Returns a function that removes the listener. */
export declare function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void;
