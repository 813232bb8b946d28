import { randomId } from './environment.js';
import { KeywayError } from './errors.js';
import { webLocks } from './web-locks.js';
/** A session's tokens. Of all clients that share the storage, one at a time refreshes or replaces them. */
export class SessionTokens {
    #options;
    #refreshInProgress;
    constructor(options) {
        this.#options = options;
    }
    async access() {
        return (await this.#options.store.get())?.access;
    }
    /** Stores the tokens of a sign-in. Waits for a refresh in progress, whose answer would otherwise replace them. */
    storeSignIn(answer) {
        return this.#exclusive(async () => this.#options.store.set(toStoredTokens(answer)));
    }
    delete() {
        return this.#exclusive(async () => this.#options.store.delete());
    }
    async refreshToken() {
        return (await this.#options.store.get())?.refresh;
    }
    /**
     * Refreshes the tokens, unless another client has meanwhile replaced the access token `rejectedToken`.
     *
     * @returns the server's answer, or undefined if another client has refreshed them meanwhile
     * @throws KeywayError `authentication_required` if there are no tokens; after a refusal with 401 the tokens are
     *   deleted
     */
    refresh(rejectedToken) {
        this.#refreshInProgress ??= this.#exclusive(() => this.#renew(rejectedToken)).finally(() => {
            this.#refreshInProgress = undefined;
        });
        return this.#refreshInProgress;
    }
    async #renew(rejectedToken) {
        const { store, refresh } = this.#options;
        const tokens = await store.get();
        if (!tokens)
            throw notSignedInError();
        if (rejectedToken !== undefined && tokens.access !== rejectedToken)
            return undefined;
        // Stored before it is used: if this process dies before the response, the next one retries with the same key and
        // gets the same successor, instead of triggering reuse detection.
        const refreshKey = tokens.refreshKey ?? randomId();
        await store.set({ ...tokens, refreshKey });
        try {
            const answer = await refresh(tokens.refresh, refreshKey);
            await store.set(toStoredTokens(answer));
            return answer;
        }
        catch (error) {
            if (error instanceof KeywayError && error.status === 401)
                await store.delete();
            throw error;
        }
    }
    #exclusive(work) {
        const { store, origin } = this.#options;
        if (store.exclusive)
            return store.exclusive(work);
        return webLocks()?.request(`keyway-refresh ${origin}`, work) ?? work();
    }
}
export function notSignedInError() {
    const advice = 'Not signed in: call verifyMagicLink first, or pass apiKey.';
    return new KeywayError('authentication_required', advice, { status: 401 });
}
function toStoredTokens({ access_token, refresh_token, session_id }) {
    return { access: access_token, refresh: refresh_token, sessionId: session_id };
}
