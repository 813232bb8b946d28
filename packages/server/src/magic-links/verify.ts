import type { Caller } from '../network.ts'
import { sha256 } from '../secrets.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Session, SignInKind } from '../sessions/session.ts'
import type { PreparedSession, StartedSession } from '../sessions/sessions.ts'
import type { Store, Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { createOnboarding, type PreparedAccount } from '../users/onboarding.ts'
import type { User } from '../users/user.ts'
import {
  belongsTo,
  type LinkRefusal,
  type LinkToken,
  linkRefusalError,
  linkState,
  type MagicLink,
  type MagicLinkProof,
} from './magic-link.ts'
import type { MagicLinkDeps } from './magic-link-deps.ts'
import { addressBucketName } from './send-limits.ts'
import { createCodeCheck } from './typed-code.ts'

interface PreparedSignIn {
  account: PreparedAccount
  preparedSession: PreparedSession
  caller: Caller
  /** The keyed hash of the address if `KEYWAY_ADMIN_EMAILS` lists it, else null. */
  listedHash: string | null
}

type Outcome = { refused: LinkRefusal } | { user: User; session: Session; isNewUser: boolean }

/**
 * Consumes a link and signs in. One transaction consumes the link, creates the account if there is none, with
 * everything that a new account has, and inserts the session. Every transaction locks in the order address, account,
 * link. Links that are not live are refused by reads; requests with the same address run one transaction at a time.
 */
export function createVerify(deps: MagicLinkDeps) {
  const { storage, clock, secrets, sessions, listed, policies, maySignUp, invitations } = deps
  const onboarding = createOnboarding(deps)
  const checkTypedCode = createCodeCheck(deps)

  return async function verify<Kind extends SignInKind>(
    proof: MagicLinkProof,
    kind: Kind,
    caller: Caller,
  ): Promise<StartedSession<Kind> & { isNewUser: boolean }> {
    const presentedLink = 'code' in proof ? await checkTypedCode(proof, caller) : await linkOfToken(proof)
    const account = await onboarding.prepare(proof.email, presentedLink.locale, clock.now())
    const preparedSession = sessions.prepare('', kind, caller)
    const listedHash = await listed.hashIfListed(proof.email)

    const outcome = await storage.runExclusive([`sign-in:${proof.email}`], async (): Promise<Outcome> => {
      const refusal = await refusalByRead(presentedLink.id, proof.email)
      if (refusal) return { refused: refusal }
      return storage.transaction(
        tx => signIn(tx, presentedLink, proof, { account, preparedSession, caller, listedHash }),
        store => committedSignIn(store, preparedSession.id, account),
      )
    })
    if ('refused' in outcome) throw linkRefusalError(outcome.refused)
    return { ...sessions.credentials(kind, outcome.user, outcome.session), isNewUser: outcome.isNewUser }
  }

  async function linkOfToken(proof: LinkToken): Promise<MagicLink> {
    const link = await storage.store.magicLinks.findByTokenHash(sha256(proof.token))
    if (!link || !belongsTo(secrets, link, proof)) throw linkRefusalError('magic_link_invalid')
    return link
  }

  /** Why the link is refused; null if it is live and its account is not suspended. */
  async function refusalByRead(linkId: string, email: EmailAddress): Promise<LinkRefusal | null> {
    const { magicLinks, users } = storage.store
    const [link, user] = await Promise.all([magicLinks.find(linkId), users.findByEmail(email)])
    if (user?.status === 'suspended') return 'account_suspended'
    if (!link) return 'magic_link_invalid'
    const state = linkState(link, clock.now())
    return state === 'live' ? null : `magic_link_${state}`
  }

  async function signIn(
    tx: Transaction,
    presentedLink: MagicLink,
    proof: MagicLinkProof,
    { account, preparedSession, caller, listedHash }: PreparedSignIn,
  ): Promise<Outcome> {
    await lockAddress(tx, proof.email)
    const existingUser = await lockAccount(tx, proof.email)
    if (existingUser?.status === 'suspended') return { refused: 'account_suspended' }
    if (!existingUser && !(await maySignUp(tx, proof.email))) return { refused: 'forbidden' }
    const link = await tx.magicLinks.consume(presentedLink.id, clock.now())
    if (!link) return { refused: await refusalOfSpentLink(tx, presentedLink.id) }
    const [user, isOnboarded] = await Promise.all([
      existingUser ?? createAccount(tx, account, caller),
      existingUser !== null && onboardImported(tx, existingUser, account, caller),
      tx.magicLinks.consumeOthers(proof.email, link.id, clock.now()),
      link.codeTries > 0 && isByRequester(proof, link) && tx.wrongCodes.forgive(link.id),
    ])
    const [session, accepted] = await Promise.all([
      sessions.open(tx, user, { ...preparedSession, appId: link.appId }),
      invitations.accept(tx, proof.email, user.id, clock.now()),
      tx.securityEvents.insert(
        securityEvent('sign_in', user.id, clock.now(), caller, { sessionId: preparedSession.id }),
      ),
    ])
    // Both operations append to the audit and lock its head, which must be locked after all other rows.
    const listedUser = listedHash === null ? user : await listed.claim(tx, listedHash, user, clock.now())
    const userWithRole = accepted ? await invitations.giveRole(tx, accepted, listedUser) : listedUser
    return { user: userWithRole, session, isNewUser: isOnboarded || user.id === account.user.id }
  }

  /**
   * Serialises sign-ins to an address: of two concurrent ones with different links, the second finds its link consumed.
   * It locks the row that counts the mails to the address, since that row exists before the account does.
   */
  async function lockAddress(tx: Transaction, email: EmailAddress): Promise<void> {
    await tx.magicLinks.lockSendBuckets([addressBucketName(email)])
  }

  /**
   * Onboards an imported account like a new one, at its first sign-in. False if that was done before, or the account
   * was not imported.
   */
  async function onboardImported(
    tx: Transaction,
    existingUser: User,
    account: PreparedAccount,
    caller: Caller,
  ): Promise<boolean> {
    if (!(await tx.users.claimOnboarding(existingUser.id))) return false
    const user = { ...account.user, id: existingUser.id }
    await onboarding.onboard(tx, { ...account, user }, caller, (await policies.read(tx)).trialCredit)
    return true
  }

  async function createAccount(tx: Transaction, account: PreparedAccount, caller: Caller): Promise<User> {
    if (await tx.users.insert(account.user)) {
      await onboarding.onboard(tx, account, caller, (await policies.read(tx)).trialCredit)
      return account.user
    }
    const winner = await lockAccount(tx, account.user.email)
    if (!winner) throw new Error('no account was inserted for an address, and none exists')
    return winner
  }
}

/**
 * Whether the person who requested the link also reads its mail, so that wrong codes for it were mistypings, not
 * guesses. Having the token is no proof: an attacker may request links to other people, who may click them.
 */
function isByRequester(proof: MagicLinkProof, link: MagicLink): boolean {
  return 'code' in proof || (proof.requestedLoginIds?.includes(link.id) ?? false)
}

/**
 * Locks the account of an address, so that it cannot be suspended between the check and the session's insert. Null if
 * there is none, or it was deleted before it could be locked.
 */
async function lockAccount(tx: Transaction, email: EmailAddress): Promise<User | null> {
  const user = await tx.users.findByEmail(email)
  const lockedUser = user && (await tx.users.lock(user.id))
  return lockedUser?.status === 'deleted' ? null : lockedUser
}

async function refusalOfSpentLink(tx: Transaction, linkId: string): Promise<LinkRefusal> {
  const link = await tx.magicLinks.find(linkId)
  return link?.usedAt === null ? 'magic_link_expired' : 'magic_link_used'
}

/** Reads the outcome back if the answer to COMMIT was lost; undefined if no session was opened. */
async function committedSignIn(
  store: Store,
  sessionId: string,
  account: PreparedAccount,
): Promise<Outcome | undefined> {
  const signedIn = await store.sessions.findWithUser(sessionId)
  return signedIn ? { ...signedIn, isNewUser: signedIn.user.id === account.user.id } : undefined
}
