import type { AccountObject, ChargeAuthorizationObject, ConsentObject, LedgerEntryObject, Page, SecurityEventObject } from '../protocol.js';
import { type Transport } from '../transport.js';
import type { PageOptions } from './paging.js';
/** Profile, balance, ledger and security events. */
export declare class AccountCalls {
    #private;
    constructor(transport: Transport);
    get(): Promise<AccountObject>;
    update(body: {
        name: string;
    }): Promise<AccountObject>;
    ledger({ limit, cursor }?: PageOptions): Promise<Page<LedgerEntryObject>>;
    securityEvents({ limit, cursor }?: PageOptions): Promise<Page<SecurityEventObject>>;
    /** Lets an app charge the balance. */
    authorizeCharges(appId: string): Promise<ChargeAuthorizationObject>;
    withdrawCharges(appId: string): Promise<ChargeAuthorizationObject>;
    /** The apps that have access to the account. */
    consents({ limit, cursor }?: PageOptions): Promise<Page<ConsentObject>>;
    /** Ends the access of an app, and what was issued to it. */
    withdrawConsent(appId: string): Promise<void>;
}
