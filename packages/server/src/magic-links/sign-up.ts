import type { Clock } from '../clock.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import { admitsSignUp } from '../policies/policy.ts'
import type { Store } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { ListedAdministrators } from '../users/listed-administrators.ts'

/**
 * Whether an address without an account may sign up under the current policies. Evaluated when the mail is delivered
 * and when the account is created, never while a request is answered: result and work of a request must not reveal
 * whether the address has an account.
 */
export type SignUpRule = (from: Store, email: EmailAddress) => Promise<boolean>

export function createSignUpRule({
  policies,
  listed,
  clock,
}: {
  policies: Pick<PolicyRegistry, 'read'>
  listed: Pick<ListedAdministrators, 'hashIfListed'>
  clock: Clock
}): SignUpRule {
  return async (from, email) =>
    admitsSignUp(await policies.read(from), email) ||
    (await listed.hashIfListed(email)) !== null ||
    (await from.invitations.findPending(email, clock.now())) !== null
}
