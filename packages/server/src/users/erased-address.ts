import type { Secrets } from '../secrets.ts'
import type { EmailAddress } from './email-address.ts'

declare const erased: unique symbol

/**
 * What stands where an address stood that was erased: whoever presents the address is recognised, and nobody learns it
 * from what is stored. No address looks like it.
 */
export type ErasedAddress = string & { readonly [erased]: true }

export function markOfErased(secrets: Secrets, email: EmailAddress): ErasedAddress {
  return secrets.mac('erased-address', email) as ErasedAddress
}

/** Whether what is stored is this address, or what was left of it. */
export function isAddressOrItsMark(
  secrets: Secrets,
  email: EmailAddress,
  stored: EmailAddress | ErasedAddress,
): boolean {
  return stored === email || secrets.verifyMac('erased-address', email, stored)
}
