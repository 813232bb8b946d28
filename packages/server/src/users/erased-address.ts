import type { Secrets } from '../secrets.ts'
import type { EmailAddress } from './email-address.ts'

declare const erased: unique symbol

/**
 * Replaces an erased address in its rows: a keyed hash. A request that presents the address still matches, but the
 * stored value does not reveal it. Never a valid address.
 */
export type ErasedAddress = string & { readonly [erased]: true }

export function erasedAddressHash(secrets: Secrets, email: EmailAddress): ErasedAddress {
  return secrets.mac('erased-address', email) as ErasedAddress
}

/** Whether the stored value is this address or its hash. */
export function matchesAddress(
  secrets: Secrets,
  email: EmailAddress,
  stored: EmailAddress | ErasedAddress,
): boolean {
  return stored === email || secrets.verifyMac('erased-address', email, stored)
}
