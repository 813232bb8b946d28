import { AccountCalls } from './calls/account.js';
import { AgentCalls } from './calls/agents.js';
import { ApiKeyCalls } from './calls/api-keys.js';
import { AppCalls } from './calls/apps.js';
import { SessionCalls } from './calls/sessions.js';
import { usageQuery } from './calls/usage.js';
import { systemClock } from './clock.js';
import { environment, serviceOrigin } from './environment.js';
import { SessionTokens } from './session-tokens.js';
import { memoryTokenStore } from './token-store.js';
import { Transport } from './transport.js';
/**
 * Client of the HTTP API for users and apps, without the calls of administrators. Errors are `KeywayError`; idempotent
 * calls are retried, honouring `Retry-After`; an expired access token is refreshed automatically.
 *
 *     const keyway = new Keyway({ url: 'https://keyway.example.com' })
 *     const { login_id } = await keyway.sendMagicLink({ email })
 *     await keyway.verifyMagicLink({ login_id, code, email })
 *     const { key } = await keyway.apiKeys.create({ name: 'build robot' })
 */
export class Keyway {
    apiKeys;
    sessions;
    account;
    agents;
    /** Needs the option `app`. */
    apps;
    #transport;
    #tokens;
    constructor(options = {}) {
        const { maxRetries = 4, longestWaitSeconds = 30, timeoutMs = 15_000, clock = systemClock } = options;
        const origin = serviceOrigin(options.url);
        const environmentKey = options.tokens || options.app ? undefined : environment('KEYWAY_API_KEY');
        this.#tokens = new SessionTokens({
            origin,
            store: options.tokens ?? memoryTokenStore(),
            refresh: (refresh_token, key) => this.#refresh(refresh_token, key),
        });
        this.#transport = new Transport({
            origin,
            apiKey: options.apiKey ?? environmentKey,
            app: options.app,
            tokens: this.#tokens,
            fetch: options.fetch ?? fetch,
            retry: { maxRetries, longestWaitSeconds, timeoutMs, clock },
        });
        this.apiKeys = new ApiKeyCalls(this.#transport);
        this.sessions = new SessionCalls(this.#transport);
        this.account = new AccountCalls(this.#transport);
        this.agents = new AgentCalls(this.#transport);
        this.apps = new AppCalls(this.#transport);
    }
    /** Sends a sign-in mail; the answer is the same whether or not the address has an account. */
    sendMagicLink(body) {
        return this.#transport.call('POST', '/auth/send-magic-link', { body, as: 'none' });
    }
    /** Signs in and stores the tokens. Not retried: a link works once. */
    async verifyMagicLink(body) {
        const path = '/auth/verify-magic-link';
        const answer = await this.#transport.call('POST', path, { body, as: 'none' });
        await this.#tokens.storeSignIn(answer);
        return answer;
    }
    /**
     * Refreshes the session's tokens now; other calls do so when needed. Returns the session's user, or undefined if
     * another tab or process has just refreshed them.
     *
     * @throws KeywayError `authentication_required` if nobody is signed in
     */
    async refresh() {
        return (await this.#tokens.refresh())?.user;
    }
    /** The account's total usage, with all keys and in all sessions, by hour or day; complete up to some seconds ago. */
    usage(range = {}) {
        return this.#transport.call('GET', '/v1/usage', { query: usageQuery(range) });
    }
    /** Ends the session on the server, and deletes its tokens from the store. Does nothing if nobody is signed in. */
    async logout() {
        const refresh_token = await this.#tokens.refreshToken();
        if (refresh_token === undefined)
            return;
        const body = { refresh_token };
        await this.#transport.call('POST', '/auth/logout', { body, as: 'none', repeatable: true });
        await this.#tokens.delete();
    }
    /** Revokes an API key or refresh token by the secret itself (RFC 7009), for anyone who found one. */
    revoke(token) {
        const body = { token };
        return this.#transport.call('POST', '/auth/revoke', { body, as: 'none', repeatable: true });
    }
    /** Exchanges an API key for an agent token, for example on a backend that the `getToken` of an agent calls. */
    exchange(body) {
        return this.#transport.call('POST', '/auth/agent-token', { body, as: 'none', repeatable: true });
    }
    #refresh(refresh_token, key) {
        return this.#transport.call('POST', '/auth/refresh', {
            body: { refresh_token },
            headers: { 'idempotency-key': key },
            as: 'none',
            repeatable: true,
        });
    }
}
