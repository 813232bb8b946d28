import { randomId } from './environment.js';
import { KeywayError } from './errors.js';
/** A session's tokens, refreshed one at a time per process and, with Web Locks, across tabs. */
export class SessionTokens {
    #options;
    #flight;
    constructor(options) {
        this.#options = options;
    }
    async access() {
        return (await this.#options.store.get())?.access;
    }
    async keep(answer) {
        await this.#options.store.set(stored(answer));
    }
    async forget() {
        await this.#options.store.delete();
    }
    async refreshToken() {
        return (await this.#options.store.get())?.refresh;
    }
    /**
     * Refreshes the tokens unless `refused`, the rejected access token, was replaced meanwhile.
     *
     * @returns the server's answer, or undefined when another tab had refreshed meanwhile
     */
    refresh(refused) {
        this.#flight ??= this.#alone(() => this.#renew(refused)).finally(() => {
            this.#flight = undefined;
        });
        return this.#flight;
    }
    async #renew(refused) {
        const { store, refresh } = this.#options;
        const tokens = await store.get();
        if (!tokens)
            throw notSignedIn();
        if (refused !== undefined && tokens.access !== refused)
            return undefined;
        // Stored before it is used: if this process dies before the response, the next one retries with the same key and
        // gets the same successor, instead of triggering reuse detection.
        const refreshKey = tokens.refreshKey ?? randomId();
        await store.set({ ...tokens, refreshKey });
        try {
            const answer = await refresh(tokens.refresh, refreshKey);
            await this.keep(answer);
            return answer;
        }
        catch (error) {
            if (error instanceof KeywayError && error.status === 401)
                await this.forget();
            throw error;
        }
    }
    #alone(work) {
        const locks = globalThis.navigator?.locks;
        return locks ? locks.request(`keyway-refresh ${this.#options.origin}`, work) : work();
    }
}
export function notSignedIn() {
    const advice = 'Not signed in: call verifyMagicLink first, or pass apiKey.';
    return new KeywayError('authentication_required', advice, { status: 401 });
}
function stored({ access_token, refresh_token, session_id }) {
    return { access: access_token, refresh: refresh_token, sessionId: session_id };
}
