import type { WebSocketConstructor } from './hub-connection.js';
/** An environment variable, on platforms that have them. */
export declare function environment(name: string): string | undefined;
/**
 * How this library names itself, so that owners see what used their key. Browsers name themselves; there a header of
 * our own would cost each call a CORS preflight.
 */
export declare function userAgent(): Record<string, string>;
/** The service's origin. Throws an error with an example if the URL is invalid. */
export declare function serviceOrigin(url: string | undefined): string;
/** The platform's WebSocket. Throws an error that says where to get one. */
export declare function platformWebSocket(): WebSocketConstructor;
/** Random, URL-safe, 128 bits: `crypto.randomUUID` is missing on pages served over plain http. */
export declare function randomId(): string;
