import type { App } from '../apps/app.ts'
import type { Clock } from '../clock.ts'
import { covers, needsConsent } from '../consents/consent.ts'
import type { Caller } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { Session, SignedIn } from '../sessions/session.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Storage, Transaction } from '../store.ts'
import type { AuthorizationCode } from './authorization-code.ts'
import type { Refusal } from './authorization-request.ts'
import { provesChallenge } from './pkce.ts'

/** A token request with a code (RFC 6749 section 4.1.3) of an authenticated client. */
export interface CodeRedemption {
  code: string
  app: App
  redirectUri: string | null
  /** The `code_verifier` of PKCE. */
  verifier: string | null
  /** The audience that the client repeats from the authorization request; null if it names none. */
  audience: string | null
}

export interface RedeemDeps {
  storage: Storage
  clock: Clock
  sessions: Pick<Sessions, 'prepareForApp' | 'open'>
}

export type RedeemedCode = SignedIn & { nonce: string | null }

export type Redeem = (wanted: CodeRedemption, caller: Caller) => Promise<RedeemedCode | { refusal: Refusal }>

/**
 * Redeems a code once: one conditional update picks the winner of concurrent calls and opens its session in the same
 * transaction. A code that is presented a second time by its client, with the right verifier and redirect URI, ends the
 * session that it opened (RFC 6749 section 4.1.2). If one of these is wrong, nothing is consumed or ended, so that a
 * stolen code alone does no harm.
 */
export function createRedeem({ storage, clock, sessions }: RedeemDeps): Redeem {
  const { store } = storage

  return async function redeem(wanted, caller) {
    const codeHash = sha256(wanted.code)
    const code = await store.authorizationCodes.find(codeHash)
    if (!code || !isProven(code, wanted)) return invalidGrant()
    if (wanted.audience !== null && wanted.audience !== code.audience)
      return { refusal: { error: 'invalid_target', description: 'The code is for another audience.' } }
    if (code.usedAt !== null) {
      await endSessionOfReusedCode(code, caller)
      return invalidGrant()
    }
    // The session records the person's browser, not the machine of the app.
    const browser: Caller = { address: code.network, network: code.network, client: code.client }
    const { scopes, audience, signInId } = code
    const preparedSession = sessions.prepareForApp(
      code.appId,
      { scopes, audience, signInId },
      code.authTime,
      browser,
    )
    const openedSession = await storage.transaction(
      async tx => {
        const user = await tx.users.lock(code.userId)
        if (user?.status !== 'active' || !(await isAllowed(tx, code, wanted.app))) return null
        if (!(await tx.authorizationCodes.consume(codeHash, preparedSession.id, clock.now()))) return null
        return { user, session: await sessions.open(tx, user, preparedSession) }
      },
      async store => (await store.sessions.findWithUser(preparedSession.id)) ?? undefined,
    )
    if (openedSession) return { ...openedSession, nonce: code.nonce }
    const currentCode = await store.authorizationCodes.find(codeHash)
    if (currentCode?.usedAt) await endSessionOfReusedCode(currentCode, caller)
    return invalidGrant()
  }

  /** Neither the person's sign-in nor the consent may have ended since the code was issued. */
  async function isAllowed(tx: Transaction, code: AuthorizationCode, app: App): Promise<boolean> {
    const signIn = await tx.sessions.find(code.signInId)
    if (signIn?.endedAt !== null) return false
    return !needsConsent(app) || covers(await tx.consents.find(code.userId, code.appId), app, code.scopes)
  }

  async function endSessionOfReusedCode({ sessionId }: AuthorizationCode, caller: Caller): Promise<void> {
    if (sessionId === null) return
    await storage.transaction(
      async tx => {
        const now = clock.now()
        await tx.sessions.end(sessionId, 'revoked', now, { at: now, caller })
        return true
      },
      async store => isEnded(await store.sessions.find(sessionId)),
    )
  }
}

function isEnded(session: Session | null): true | undefined {
  return session?.endedAt !== null || undefined
}

/** Whether the code is presented by its own client, with the redirect URI and the verifier that belong to the code. */
function isProven(code: AuthorizationCode, { app, redirectUri, verifier }: CodeRedemption): boolean {
  if (code.appId !== app.id || !provesChallenge(code.codeChallenge, verifier)) return false
  // OAuth 2.1 clients, which PKCE binds to the request, no longer repeat the redirect URI.
  return redirectUri === code.redirectUri || (redirectUri === null && code.codeChallenge !== null)
}

function invalidGrant(): { refusal: Refusal } {
  const description = 'The code is not valid for this client, has expired, or was redeemed before.'
  return { refusal: { error: 'invalid_grant', description } }
}
