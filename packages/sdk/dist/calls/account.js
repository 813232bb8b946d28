import { segment } from '../transport.js';
/** Profile, balance, ledger and security events. */
export class AccountCalls {
    #transport;
    constructor(transport) {
        this.#transport = transport;
    }
    get() {
        return this.#transport.call('GET', '/v1/me');
    }
    update(body) {
        return this.#transport.call('PATCH', '/v1/me', { body });
    }
    /** Mails a link to the new address and one to the current address. Needs a sign-in within the last 30 minutes. */
    changeEmail(body) {
        return this.#transport.call('POST', '/v1/me/email', { body });
    }
    /** Confirms the change by the token of one of the two links; the second confirmation changes the address. */
    confirmEmail(body) {
        return this.#transport.call('POST', '/v1/me/email/confirm', { body });
    }
    cancelEmailChange() {
        return this.#transport.call('DELETE', '/v1/me/email');
    }
    /**
     * Schedules the deletion of the account for `deletes_at`, in 7 days. Needs a sign-in within the last 30 minutes, as
     * does `restore`.
     */
    delete() {
        return this.#transport.call('DELETE', '/v1/me');
    }
    /** Cancels the scheduled deletion. */
    restore() {
        return this.#transport.call('POST', '/v1/me/restore');
    }
    ledger({ limit, cursor } = {}) {
        return this.#transport.call('GET', '/v1/me/ledger', { query: { limit, cursor } });
    }
    /** Security events, newest first; only those of the given type and about the given key, if any. */
    securityEvents({ limit, cursor, type, key_id, } = {}) {
        return this.#transport.call('GET', '/v1/security-events', { query: { limit, cursor, type, key_id } });
    }
    /** Lets an app charge the balance. */
    authorizeCharges(appId) {
        return this.#transport.call('PUT', `/v1/me/charge-authorizations/${segment(appId)}`);
    }
    withdrawCharges(appId) {
        return this.#transport.call('DELETE', `/v1/me/charge-authorizations/${segment(appId)}`);
    }
    /** The apps that have access to the account. */
    consents({ limit, cursor } = {}) {
        return this.#transport.call('GET', '/v1/consents', { query: { limit, cursor } });
    }
    /** Withdraws an app's access to the account, and revokes all tokens that were issued to it. */
    withdrawConsent(appId) {
        return this.#transport.call('DELETE', `/v1/consents/${segment(appId)}`);
    }
}
