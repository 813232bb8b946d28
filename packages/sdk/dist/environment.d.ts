import type { WebSocketConstructor } from './hub-connection.js';
/** An environment variable where the platform has such a thing. */
export declare function environment(name: string): string | undefined;
/** The service's origin, or an error that shows the right form. */
export declare function serviceOrigin(url: string | undefined): string;
/** The platform's WebSocket, or an error that says where to get one. */
export declare function platformWebSocket(): WebSocketConstructor;
/** Random, URL-safe, 128 bits: `crypto.randomUUID` is missing on pages served over plain http. */
export declare function randomId(): string;
