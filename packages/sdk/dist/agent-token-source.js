import { KeywayError } from './errors.js';
import { requestJson } from './http.js';
import { API_KEY_PATTERN } from './protocol.js';
/** Fraction of the lifetime after which a token is no longer used for a new connection. */
const USABLE_SHARE = 0.8;
/**
 * Timeout of an exchange; shorter than that of a connection attempt, so that the next attempt starts a new exchange.
 */
const EXCHANGE_TIMEOUT_MS = 8_000;
/**
 * Used if the lifetime is invalid (missing, not positive, not a finite number). The hub reports the actual lifetime in
 * `ready`.
 */
const FALLBACK_LIFETIME_SECONDS = 60;
const MAX_LIFETIME_SECONDS = 86_400;
/**
 * Provides agent tokens, by the exchange of an API key or the caller's `getToken`. Concurrent calls share one
 * exchange; a token is reused for 80 % of its lifetime, by the monotonic clock.
 */
export class AgentTokenSource {
    #options;
    #exchangeInProgress;
    #cached;
    constructor(options) {
        this.#options = options;
        if (options.getToken)
            return;
        if (options.apiKey === undefined) {
            throw new KeywayError('invalid_configuration', 'Pass apiKey (or set KEYWAY_API_KEY), or getToken.');
        }
        if (!mayBeKey(options.apiKey)) {
            const message = 'The API key is malformed: it is svc_ and 32 letters or digits, without spaces.';
            throw new KeywayError('invalid_api_key', message);
        }
    }
    async get() {
        if (this.#cached && this.#options.clock.now() < this.#cached.usableUntil)
            return this.#cached.token;
        return this.fresh();
    }
    /** A new token, or that of the exchange in progress. */
    fresh() {
        this.#exchangeInProgress ??= this.#obtain().finally(() => {
            this.#exchangeInProgress = undefined;
        });
        return this.#exchangeInProgress;
    }
    /** Discards the cached token, because the hub refused it. */
    forget() {
        this.#cached = undefined;
    }
    async #obtain() {
        const { clock } = this.#options;
        const requestedAt = clock.now();
        const { token, expires_in } = await withDeadline(clock, signal => this.#requestToken(signal));
        if (typeof token !== 'string' || token === '') {
            throw new KeywayError('bad_response', 'The token source returned no token.', { retryable: true });
        }
        // Measured from the request, not the response: the token was issued at some point in between.
        this.#cached = { token, usableUntil: requestedAt + USABLE_SHARE * lifetimeSeconds(expires_in) * 1000 };
        return token;
    }
    async #requestToken(signal) {
        const { origin, apiKey, getToken, fetch } = this.#options;
        if (getToken) {
            const answer = await getToken(signal);
            return typeof answer === 'string' ? { token: answer } : answer;
        }
        const body = { api_key: apiKey };
        return requestJson(fetch, `${origin}/auth/agent-token`, {
            method: 'POST',
            body,
            signal,
        });
    }
}
/** The lifetime in seconds, or FALLBACK_LIFETIME_SECONDS if it is invalid; at most a day. */
export function lifetimeSeconds(expiresIn) {
    if (typeof expiresIn !== 'number' || !Number.isFinite(expiresIn) || expiresIn <= 0) {
        return FALLBACK_LIFETIME_SECONDS;
    }
    return Math.min(expiresIn, MAX_LIFETIME_SECONDS);
}
/**
 * Rejects after the timeout even if the agent's option `getToken` ignores its signal, so that a hanging call does not
 * block later attempts.
 */
async function withDeadline(clock, requestToken) {
    const controller = new AbortController();
    return new Promise((resolve, reject) => {
        const cancel = clock.after(EXCHANGE_TIMEOUT_MS, () => {
            const error = new KeywayError('timeout', 'The token exchange took too long.', { retryable: true });
            controller.abort(error);
            reject(error);
        });
        requestToken(controller.signal).then(resolve, reject).finally(cancel);
    });
}
/** Whether the text may be a key. Keys that the service imported from another system have other formats. */
function mayBeKey(text) {
    return text.startsWith('svc_') ? API_KEY_PATTERN.test(text) : /^[\x21-\x7e]+$/.test(text);
}
