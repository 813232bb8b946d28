import { KeywayError } from './errors.js';
import { requestJson, withRetries } from './http.js';
import { notSignedInError } from './session-tokens.js';
/** Sends calls to the service, with credentials, retries, and one refresh if the access token is rejected. */
export class Transport {
    #options;
    constructor(options) {
        this.#options = options;
    }
    async call(method, path, options = {}) {
        const { as = 'user' } = options;
        if (as === 'none')
            return this.#send(method, path, options, undefined);
        if (as === 'app')
            return this.#send(method, path, options, this.#appCredential());
        if (this.#options.apiKey)
            return this.#send(method, path, options, `Bearer ${this.#options.apiKey}`);
        return this.#callInSession(method, path, options);
    }
    async #callInSession(method, path, options) {
        const { tokens } = this.#options;
        const access = await tokens.access();
        if (access === undefined)
            throw notSignedInError();
        try {
            return await this.#send(method, path, options, `Bearer ${access}`);
        }
        catch (error) {
            // `invalid_token` is refused before the call has any effect, so even a non-idempotent one may be sent again.
            if (!(error instanceof KeywayError) || error.code !== 'invalid_token')
                throw error;
            await tokens.refresh(access);
            return this.#send(method, path, options, `Bearer ${await tokens.access()}`);
        }
    }
    #send(method, path, options, credential) {
        const { origin, fetch, retry } = this.#options;
        const { body, query, repeatable = method !== 'POST' } = options;
        const url = `${origin}${path}${queryString(query)}`;
        const headers = { ...options.headers, ...(credential && { authorization: credential }) };
        const retryOptions = repeatable ? retry : { ...retry, maxRetries: 0 };
        const attempt = (signal) => requestJson(fetch, url, { method, body, headers, signal });
        return withRetries(attempt, retryOptions, options.signal);
    }
    #appCredential() {
        const { app } = this.#options;
        if (!app)
            throw new KeywayError('invalid_configuration', 'This call needs app: { id, secret }.');
        return `Basic ${btoa(`${app.id}:${app.secret}`)}`;
    }
}
/** Encodes one path segment, so that its value cannot change the path. */
export function segment(id) {
    return encodeURIComponent(id);
}
function queryString(query = {}) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        if (value !== undefined)
            parameters.set(name, String(value));
    }
    return parameters.size > 0 ? `?${parameters}` : '';
}
