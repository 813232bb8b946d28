import type { Secrets } from '../secrets.ts'
import type { EmailAddress } from './email-address.ts'

declare const erased: unique symbol

/**
 * A keyed hash that replaces an erased address in its rows. A request with the address still matches it, but the stored
 * value does not reveal the address. Never a valid address itself.
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
