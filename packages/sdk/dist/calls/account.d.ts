import type { AccountObject, ChargeAuthorizationObject, ConsentObject, LedgerEntryObject, Page, SecurityEventObject } from '../protocol.js';
import { type Transport } from '../transport.js';
import type { PageOptions } from './paging.js';
/** Profile, balance, ledger and security events. */
export declare class AccountCalls {
    #private;
    constructor(transport: Transport);
    get(): Promise<AccountObject>;
    update(body: {
        name?: string;
        locale?: string;
    }): Promise<AccountObject>;
    /** Mails a link to the new address and one to the current address. Needs a sign-in within the last 30 minutes. */
    changeEmail(body: {
        email: string;
    }): Promise<{
        status: 'sent';
        expires_in: number;
    }>;
    /** Confirms the change by the token of one of the two links; the second confirmation changes the address. */
    confirmEmail(body: {
        token: string;
    }): Promise<AccountObject>;
    cancelEmailChange(): Promise<void>;
    /**
     * Schedules the deletion of the account for `deletes_at`, in 7 days. Needs a sign-in within the last 30 minutes, as
     * does `restore`.
     */
    delete(): Promise<AccountObject>;
    /** Cancels the scheduled deletion. */
    restore(): Promise<AccountObject>;
    ledger({ limit, cursor }?: PageOptions): Promise<Page<LedgerEntryObject>>;
    /** Security events, newest first; only those of the given type and about the given key, if any. */
    securityEvents({ limit, cursor, type, key_id, }?: PageOptions & {
        type?: string;
        key_id?: string;
    }): Promise<Page<SecurityEventObject>>;
    /** Lets an app charge the balance. */
    authorizeCharges(appId: string): Promise<ChargeAuthorizationObject>;
    withdrawCharges(appId: string): Promise<ChargeAuthorizationObject>;
    /** The apps that have access to the account. */
    consents({ limit, cursor }?: PageOptions): Promise<Page<ConsentObject>>;
    /** Withdraws an app's access to the account, and revokes all tokens that were issued to it. */
    withdrawConsent(appId: string): Promise<void>;
}
