import { KeywayError } from './errors.js';
/** The value of an environment variable; undefined if it is not set, empty, or not accessible on this platform. */
export function environment(name) {
    const { process } = globalThis;
    try {
        return process?.env?.[name] || undefined;
    }
    catch {
        return undefined; // Deno without --allow-env
    }
}
/** The version in package.json. */
const VERSION = '0.1.0';
/**
 * A `User-Agent` header that names this library, so that owners see which client used their key. Empty in browsers,
 * which send their own: another header would cause a CORS preflight for each call.
 */
export function userAgent() {
    const isBrowser = 'document' in globalThis || 'importScripts' in globalThis;
    return isBrowser ? {} : { 'user-agent': `keyway-sdk/${VERSION}` };
}
/**
 * The origin of `url`, or else of `KEYWAY_URL`.
 *
 * @throws KeywayError `invalid_configuration`, with an example, if neither is given or it is not an http or https URL
 */
export function serviceOrigin(url) {
    const serviceUrl = url ?? environment('KEYWAY_URL');
    const example = 'for example https://keyway.example.com';
    if (serviceUrl === undefined) {
        throw new KeywayError('invalid_configuration', `Pass url (or set KEYWAY_URL), ${example}.`);
    }
    if (!URL.canParse(serviceUrl)) {
        throw new KeywayError('invalid_configuration', `"${serviceUrl}" is not a URL: pass an origin, ${example}.`);
    }
    const { origin, protocol } = new URL(serviceUrl);
    if (protocol !== 'https:' && protocol !== 'http:') {
        throw new KeywayError('invalid_configuration', `"${serviceUrl}" must start with https://, ${example}.`);
    }
    return origin;
}
/**
 * The platform's WebSocket, or else the one in this package.
 *
 * @throws KeywayError `invalid_configuration` that says where to get one, if there is neither
 */
export function platformWebSocket() {
    const { WebSocket } = globalThis;
    if (WebSocket)
        return isNode() ? webSocketWithUserAgent(WebSocket) : WebSocket;
    const bundled = bundledWebSocket();
    if (bundled)
        return bundled;
    const advice = 'This platform has no WebSocket: npm install ws, and pass new Agent({ WebSocket, … }).';
    throw new KeywayError('invalid_configuration', advice);
}
function isNode() {
    const { process } = globalThis;
    return process?.release?.name === 'node' && !('bun' in (process.versions ?? {})) && !('Deno' in globalThis);
}
/** Makes Node's WebSocket, which accepts headers, send this library's User-Agent, as HTTP calls do. */
function webSocketWithUserAgent(WebSocket) {
    return class extends WebSocket {
        constructor(url, protocols) {
            super(url, { protocols, headers: userAgent() });
        }
    };
}
/**
 * The `ws` client in this package, for Node before 22, which has no WebSocket. It can be loaded from Node 20.16 on;
 * undefined on other platforms, or if the file is missing.
 */
function bundledWebSocket() {
    const { process } = globalThis;
    try {
        const bundled = process?.getBuiltinModule?.('node:module').createRequire(import.meta.url)(BUNDLED_WS_PATH);
        return (bundled &&
            class extends bundled {
                constructor(url, protocols) {
                    super(url, protocols, { headers: userAgent() });
                }
            });
    }
    catch {
        return undefined; // Bundled apps and source checkouts do not have this file.
    }
}
/** Relative to `dist`; pack.ts copies the `ws` client to this path. */
const BUNDLED_WS_PATH = '../vendor/ws/index.js';
/** A random URL-safe id of 128 bits. Does not use `crypto.randomUUID`, which pages served over plain http lack. */
export function randomId() {
    return hex(crypto.getRandomValues(new Uint8Array(16)));
}
export function hex(bytes) {
    return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}
/** Calls back once when the signal aborts, or soon if it has aborted. Returns a function that removes the listener. */
export function onAbort(signal, callback) {
    if (!signal)
        return () => { };
    if (signal.aborted)
        queueMicrotask(callback);
    signal.addEventListener('abort', callback, { once: true });
    return () => signal.removeEventListener('abort', callback);
}
