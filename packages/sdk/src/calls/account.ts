import type {
  AccountObject,
  ChargeAuthorizationObject,
  ConsentObject,
  LedgerEntryObject,
  Page,
  SecurityEventObject,
} from '../protocol.ts'
import { segment, type Transport } from '../transport.ts'
import type { PageOptions } from './paging.ts'

/** Profile, balance, ledger and security events. */
export class AccountCalls {
  #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  get(): Promise<AccountObject> {
    return this.#transport.call('GET', '/v1/me')
  }

  update(body: { name?: string; locale?: string }): Promise<AccountObject> {
    return this.#transport.call('PATCH', '/v1/me', { body })
  }

  /** Mails a link to the new address and one to the current address. Needs a sign-in within the last 30 minutes. */
  changeEmail(body: { email: string }): Promise<{ status: 'sent'; expires_in: number }> {
    return this.#transport.call('POST', '/v1/me/email', { body })
  }

  /** Confirms the change by the token of one of the two links; the second confirmation changes the address. */
  confirmEmail(body: { token: string }): Promise<AccountObject> {
    return this.#transport.call('POST', '/v1/me/email/confirm', { body })
  }

  cancelEmailChange(): Promise<void> {
    return this.#transport.call('DELETE', '/v1/me/email')
  }

  /**
   * Schedules the deletion of the account for `deletes_at`, in 7 days. Needs a sign-in within the last 30 minutes, as
   * does `restore`.
   */
  delete(): Promise<AccountObject> {
    return this.#transport.call('DELETE', '/v1/me')
  }

  /** Cancels the scheduled deletion. */
  restore(): Promise<AccountObject> {
    return this.#transport.call('POST', '/v1/me/restore')
  }

  ledger({ limit, cursor }: PageOptions = {}): Promise<Page<LedgerEntryObject>> {
    return this.#transport.call('GET', '/v1/me/ledger', { query: { limit, cursor } })
  }

  /** Security events, newest first; only those of the given type and about the given key, if any. */
  securityEvents({
    limit,
    cursor,
    type,
    key_id,
  }: PageOptions & { type?: string; key_id?: string } = {}): Promise<Page<SecurityEventObject>> {
    return this.#transport.call('GET', '/v1/security-events', { query: { limit, cursor, type, key_id } })
  }

  /** Lets an app charge the balance. */
  authorizeCharges(appId: string): Promise<ChargeAuthorizationObject> {
    return this.#transport.call('PUT', `/v1/me/charge-authorizations/${segment(appId)}`)
  }

  withdrawCharges(appId: string): Promise<ChargeAuthorizationObject> {
    return this.#transport.call('DELETE', `/v1/me/charge-authorizations/${segment(appId)}`)
  }

  /** The apps that have access to the account. */
  consents({ limit, cursor }: PageOptions = {}): Promise<Page<ConsentObject>> {
    return this.#transport.call('GET', '/v1/consents', { query: { limit, cursor } })
  }

  /** Withdraws an app's access to the account, and revokes all tokens that were issued to it. */
  withdrawConsent(appId: string): Promise<void> {
    return this.#transport.call('DELETE', `/v1/consents/${segment(appId)}`)
  }
}
