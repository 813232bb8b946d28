import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { type Secrets, sha256 } from '../secrets.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Session, SessionKind } from '../sessions/session.ts'
import type { StartedSession } from '../sessions/sessions.ts'
import type { Store, Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { isAddressOrItsMark } from '../users/erased-address.ts'
import { createOnboarding, type PreparedAccount } from '../users/onboarding.ts'
import type { User } from '../users/user.ts'
import { provesCode } from './login-code.ts'
import type { MagicLink } from './magic-link.ts'
import type { MagicLinkDeps, MagicLinkProof } from './magic-links.ts'
import { addressBucketName } from './send-limits.ts'

type Refused = 'magic_link_invalid' | 'magic_link_expired' | 'magic_link_used' | 'account_suspended'
type Outcome = { refused: Refused } | { user: User; session: Session; isNewUser: boolean }

/**
 * Spends a link and signs in, as one transaction: the spent link, the account with everything that a new one
 * has, the session. Rows are locked in the order address, account, link, by everyone.
 */
export function createVerify(deps: MagicLinkDeps) {
  const { storage, clock, secrets, sessions } = deps
  const onboarding = createOnboarding(deps)

  return async function verify(
    proof: MagicLinkProof,
    kind: SessionKind,
    caller: Caller,
  ): Promise<StartedSession & { isNewUser: boolean }> {
    const account = await onboarding.prepare(proof.email, clock.now())
    const prepared = sessions.prepare('', kind, caller)

    const outcome = await storage.transaction(
      async (tx): Promise<Outcome> => {
        const claimed = await findLink(tx, proof)
        if (!claimed || !matches(secrets, claimed, proof)) return { refused: 'magic_link_invalid' }
        await lockAddress(tx, proof.email)
        const known = await lockAccount(tx, proof.email)
        // After the account, since counting a try locks the link; before anything is told of the account.
        if ('code' in proof && !(await provesCode(tx, secrets, claimed, proof.code))) {
          return { refused: 'magic_link_invalid' }
        }
        if (known?.status === 'suspended') return { refused: 'account_suspended' }
        const link = await tx.magicLinks.consume(claimed.id, clock.now())
        if (!link) return { refused: await whySpent(tx, claimed.id) }
        // Independent of each other, so they are under way together.
        const [user] = await Promise.all([
          known ?? createAccount(tx, account, caller),
          tx.magicLinks.consumeOthers(proof.email, link.id, clock.now()),
        ])
        const [session] = await Promise.all([
          sessions.open(tx, user, { ...prepared, appId: link.appId }),
          tx.securityEvents.insert(
            securityEvent('sign_in', user.id, clock.now(), caller, { sessionId: prepared.id }),
          ),
        ])
        return { user, session, isNewUser: user.id === account.user.id }
      },
      store => signedIn(store, prepared.id, account),
    )
    if ('refused' in outcome) throw refusedAs(outcome.refused)
    return { ...sessions.credentials(outcome.user, outcome.session), isNewUser: outcome.isNewUser }
  }

  /**
   * Two links of one address at once: the second waits here, and finds its link ended by the first. The row
   * that counts the address's sends is the one thing an address has before it has an account.
   */
  async function lockAddress(tx: Transaction, email: EmailAddress): Promise<void> {
    await tx.magicLinks.lockSendBuckets([addressBucketName(email)])
  }

  async function createAccount(tx: Transaction, account: PreparedAccount, caller: Caller): Promise<User> {
    if (await tx.users.insert(account.user)) {
      await onboarding.onboard(tx, account, caller)
      return account.user
    }
    const winner = await lockAccount(tx, account.user.email)
    if (!winner) throw new Error('an address has an account and has none')
    return winner
  }
}

async function findLink(tx: Transaction, proof: MagicLinkProof): Promise<MagicLink | null> {
  if ('token' in proof) return tx.magicLinks.findByTokenHash(sha256(proof.token))
  const id = parseId(proof.loginId)
  return id ? tx.magicLinks.find(id) : null
}

function matches(secrets: Secrets, link: MagicLink, proof: MagicLinkProof): boolean {
  const isApp = proof.appId === undefined || proof.appId === link.appId
  return isApp && isAddressOrItsMark(secrets, proof.email, link.email)
}

/** The account as it stands until this transaction ends: nobody suspends it between the look and the session. */
async function lockAccount(tx: Transaction, email: EmailAddress): Promise<User | null> {
  const found = await tx.users.findByEmail(email)
  const locked = found && (await tx.users.lock(found.id))
  return locked?.status === 'deleted' ? null : locked
}

async function whySpent(tx: Transaction, linkId: string): Promise<Refused> {
  const link = await tx.magicLinks.find(linkId)
  return link?.usedAt === null ? 'magic_link_expired' : 'magic_link_used'
}

/** Reads a lost COMMIT back by the session's id. */
async function signedIn(
  store: Store,
  sessionId: string,
  account: PreparedAccount,
): Promise<Outcome | undefined> {
  const found = await store.sessions.findWithUser(sessionId)
  return found ? { ...found, isNewUser: found.user.id === account.user.id } : undefined
}

const REFUSALS: Record<Refused, string> = {
  magic_link_invalid: 'This sign-in link or code is not valid for this address. Ask for a new one.',
  magic_link_expired: 'This sign-in link has expired. Ask for a new one.',
  magic_link_used: 'This sign-in link was used already. Ask for a new one.',
  account_suspended: 'This account is suspended.',
}

function refusedAs(code: Refused): KeywayError {
  return new KeywayError(code, REFUSALS[code])
}
