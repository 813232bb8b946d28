import { AccountCalls } from './calls/account.js';
import { AgentCalls } from './calls/agents.js';
import { ApiKeyCalls } from './calls/api-keys.js';
import { AppCalls } from './calls/apps.js';
import { SessionCalls } from './calls/sessions.js';
import { type UsageRange } from './calls/usage.js';
import type { AgentTokenAnswer, SendMagicLinkAnswer, SignInAnswer, UsageAnswer, UserObject } from './protocol.js';
import { type TokenStore } from './token-store.js';
export interface KeywayOptions {
    /** The service's public URL. Default: the environment variable `KEYWAY_URL`. */
    url?: string | undefined;
    /** Calls with this key instead of a session. Default: `KEYWAY_API_KEY`, unless `tokens` or `app` is given. */
    apiKey?: string | undefined;
    /** The store of the session's tokens; see `TokenStore`. Default: in memory. */
    tokens?: TokenStore | undefined;
    /** Id and secret of an app, for its calls (`apps`). */
    app?: {
        id: string;
        secret: string;
    } | undefined;
    /** Maximum retries of calls that are safe to retry. Default 4. */
    maxRetries?: number | undefined;
    /** Longest `Retry-After` to wait for, in seconds; beyond it the error is thrown. Default 30. */
    longestWaitSeconds?: number | undefined;
    /** Timeout of each attempt in milliseconds. Default 15000. */
    timeoutMs?: number | undefined;
    fetch?: typeof fetch | undefined;
}
/** Redeems a magic link by its token, or by the code from the mail with the `login_id` of the request. */
export type VerifyMagicLink = {
    token: string;
    email: string;
    app_id?: string;
} | {
    login_id: string;
    code: string;
    email: string;
    app_id?: string;
};
/**
 * Client of the HTTP API for users and apps, without the calls of administrators. Errors are `KeywayError`; idempotent
 * calls are retried, honouring `Retry-After`; an expired access token is refreshed automatically.
 *
 *     const keyway = new Keyway({ url: 'https://keyway.example.com' })
 *     const { login_id } = await keyway.sendMagicLink({ email })
 *     await keyway.verifyMagicLink({ login_id, code, email })
 *     const { key } = await keyway.apiKeys.create({ name: 'build robot' })
 */
export declare class Keyway {
    #private;
    readonly apiKeys: ApiKeyCalls;
    readonly sessions: SessionCalls;
    readonly account: AccountCalls;
    readonly agents: AgentCalls;
    /** Needs the option `app`. */
    readonly apps: AppCalls;
    constructor(options?: KeywayOptions);
    /** Sends a sign-in mail; the answer is the same whether or not the address has an account. */
    sendMagicLink(body: {
        email: string;
        app_id?: string;
        locale?: string;
    }): Promise<SendMagicLinkAnswer>;
    /** Signs in and stores the tokens. Not retried: a link works once. */
    verifyMagicLink(body: VerifyMagicLink): Promise<SignInAnswer>;
    /**
     * Refreshes the session's tokens now; other calls do so when needed. Returns the session's user, or undefined if
     * another tab or process has just refreshed them.
     *
     * @throws KeywayError `authentication_required` if nobody is signed in
     */
    refresh(): Promise<UserObject | undefined>;
    /** The account's total usage, with all keys and in all sessions, by hour or day; complete up to some seconds ago. */
    usage(range?: UsageRange): Promise<UsageAnswer>;
    /** Ends the session on the server, and deletes its tokens from the store. Does nothing if nobody is signed in. */
    logout(): Promise<void>;
    /** Revokes an API key or refresh token by the secret itself (RFC 7009), for anyone who found one. */
    revoke(token: string): Promise<void>;
    /** Exchanges an API key for an agent token, for example on a backend that the `getToken` of an agent calls. */
    exchange(body: {
        api_key: string;
        audience?: string;
    }): Promise<AgentTokenAnswer>;
}
