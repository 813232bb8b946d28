import type { WebSocketConstructor } from './hub-connection.js';
/** The value of an environment variable; undefined if it is not set, empty, or not accessible on this platform. */
export declare function environment(name: string): string | undefined;
/**
 * A `User-Agent` header that names this library, so that owners see which client used their key. Empty in browsers,
 * which send their own: another header would cause a CORS preflight for each call.
 */
export declare function userAgent(): Record<string, string>;
/**
 * The origin of `url`, or else of `KEYWAY_URL`.
 *
 * @throws KeywayError `invalid_configuration`, with an example, if neither is given or it is not an http or https URL
 */
export declare function serviceOrigin(url: string | undefined): string;
/**
 * The platform's WebSocket, or else the one in this package.
 *
 * @throws KeywayError `invalid_configuration` that says where to get one, if there is neither
 */
export declare function platformWebSocket(): WebSocketConstructor;
/** A random URL-safe id of 128 bits. Does not use `crypto.randomUUID`, which pages served over plain http lack. */
export declare function randomId(): string;
export declare function hex(bytes: Uint8Array): string;
/** Calls back once when the signal aborts, or soon if it has aborted. Returns a function that removes the listener. */
export declare function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void;
