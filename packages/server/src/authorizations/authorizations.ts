import { type App, isClientUrl, isSelfDescribed } from '../apps/app.ts'
import type { ChangeLimits } from '../change-limits.ts'
import { covers, needsConsent } from '../consents/consent.ts'
import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { randomToken, type Secrets, sha256 } from '../secrets.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { SignedIn } from '../sessions/session.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import { CODE_BYTES, CODE_LIFETIME, CODE_PREFIX } from './authorization-code.ts'
import type { AuthorizationRequest, Refusal, RequestParams } from './authorization-request.ts'
import { type BeginDeps, type CheckedRequest, createBegin } from './begin.ts'
import { type IssuedIdToken, readIdToken } from './id-token.ts'
import { createPushedRequests, type PushedRequests } from './pushed-requests.ts'
import { createRedeem, type Redeem, type RedeemDeps } from './redeem.ts'
import { responseUri } from './response-uri.ts'

/** What a request needs before it can be answered, or the error with which it is answered at once. */
export type Decision =
  | { needs: 'sign_in' }
  | { needs: 'consent'; scopes: string[] }
  | { needs: 'nothing' }
  | { refusal: Refusal }

/** An authorization request as the browser keeps it until the person has signed in and consented. */
export interface BrowserRequest {
  request: AuthorizationRequest
  /** When the browser first sent it. A sign-in after this instant was made for this request. */
  firstSentAt: number
  /** The id of the pushed request; null for other requests. */
  pushedId: string | null
}

/** Answers authorization requests: OpenID Connect Core section 3.1, RFC 6749 section 4.1. */
export interface Authorizations {
  /** Reads a request from the query of the authorization endpoint. @param network of the caller */
  begin(query: URLSearchParams, network: string): Promise<CheckedRequest>
  /** Reads a request that the browser kept while the person signed in or consented. */
  resume(params: RequestParams, pushedId: string | null, network: string): Promise<CheckedRequest>
  /**
   * The languages that a request asks for, most preferred first (OpenID Connect Core section 3.1.2.1); those of the
   * pushed parameters if it was pushed, and none if the pushed request has expired.
   */
  localesOf(query: URLSearchParams): string[]
  /**
   * What the person must do before the request can be answered; a refusal if `prompt` or `id_token_hint` requires one.
   */
  decide(browserRequest: BrowserRequest, signedIn: SignedIn | null): Promise<Decision>
  /**
   * Issues a code and returns the URL to redirect the browser to, with the code, or with an error if the person was
   * issued too many codes. Null if the pushed request was answered before.
   * @param consented scopes that the person granted just now; null if no consent was asked for
   */
  issue(
    browserRequest: BrowserRequest,
    signedIn: SignedIn,
    consented: readonly string[] | null,
    caller: Caller,
  ): Promise<string | null>
  /**
   * Whether the browser may be redirected to the app at once, without a click on a page of this service (RFC 9700
   * section 4.11.2). A client that registered or described itself may be anybody's, so the person must have consented
   * to it before.
   */
  mayRedirectTo(app: App, signedIn: SignedIn | null): Promise<boolean>
  /** The URL that redirects the browser back to the app with an error. */
  refuse(to: { redirectUri: string; state: string | null }, refusal: Refusal): string
  redeem: Redeem
  push: PushedRequests['push']
  /** The claims of an id token of this service, expired or not. Null for other text, or if its signing key retired. */
  readIdToken(token: string): Promise<IssuedIdToken | null>
  /** Ends the app's session that an id token names, when a person signs out in the app. */
  endIssued(issued: IssuedIdToken, caller: Caller): Promise<void>
  /** The app with this client id, as `Clients.find` finds it. @param network of the caller */
  findApp(clientId: string, network: string): Promise<App | null>
}

export interface AuthorizationDeps extends BeginDeps, RedeemDeps {
  secrets: Secrets
  jwt: Jwt
  changeLimits: ChangeLimits
}

export function createAuthorizations(deps: AuthorizationDeps): Authorizations {
  const { storage, clock, publicUrl } = deps
  const { store } = storage
  const pushedRequests = createPushedRequests(deps)

  return {
    ...createBegin(deps, pushedRequests),
    push: pushedRequests.push,
    readIdToken: token => readIdToken(deps.jwt, token),

    async endIssued({ sessionId }, caller) {
      await storage.transaction(
        async tx => {
          const now = clock.now()
          await tx.sessions.end(sessionId, 'logout', now, { at: now, caller })
          return true
        },
        async store => (await store.sessions.find(sessionId))?.endedAt !== null || undefined,
      )
    },
    redeem: createRedeem(deps),

    async decide(browserRequest, signedIn) {
      const { request } = browserRequest
      const isSilent = request.prompts.includes('none')
      if (!signedIn || !isFresh(browserRequest, signedIn)) {
        return isSilent
          ? refused('login_required', 'Nobody is signed in, or not recently enough.')
          : { needs: 'sign_in' }
      }
      if (!(await isHintedPerson(request, signedIn))) {
        // A person who signed in just for this request is not asked to sign in again, which could repeat without end.
        return isSilent || signedIn.session.createdAt >= browserRequest.firstSentAt
          ? refused('login_required', 'Another person is signed in than the one of the id_token_hint.')
          : { needs: 'sign_in' }
      }
      const scopes = await missingConsent(request, signedIn.user.id)
      if (!scopes) return { needs: 'nothing' }
      return isSilent
        ? refused('consent_required', 'The person has not agreed to what the app asks for.')
        : { needs: 'consent', scopes }
    },

    async issue({ request, pushedId }, { user, session }, consented, caller) {
      const refusal = tooManyCodes(user.id)
      if (refusal)
        return responseUriTo(request, { error: refusal.error, error_description: refusal.description })
      const { app } = request
      const code = CODE_PREFIX + randomToken(CODE_BYTES)
      const codeHash = sha256(code)
      const consentId = newId(clock.now())
      const isIssued = await storage.transaction(
        async tx => {
          const now = clock.now()
          const isInserted = await tx.authorizationCodes.insert({
            codeHash,
            appId: app.id,
            userId: user.id,
            signInId: session.id,
            redirectUri: request.namesRedirectUri ? request.redirectUri : null,
            scopes: grantedScopes(request),
            audience: request.audience,
            nonce: request.nonce,
            codeChallenge: request.codeChallenge,
            authTime: session.createdAt,
            network: caller.network,
            client: caller.client,
            pushedId,
            createdAt: now,
            expiresAt: now + CODE_LIFETIME,
            usedAt: null,
            sessionId: null,
          })
          if (!isInserted) return false
          // Stores what the client's metadata document says, since the consent and the session refer to the app's row.
          if (isClientUrl(app.id) && !(await tx.apps.insert(app))) await tx.apps.update(app)
          if (consented) {
            await tx.consents.grant(
              { id: consentId, userId: user.id, appId: app.id, scopes: [...consented], grantedAt: now },
              app.createdAt,
            )
            await tx.securityEvents.insert(securityEvent('consent_granted', user.id, now, caller))
          }
          return true
        },
        async store => (await store.authorizationCodes.find(codeHash)) !== null || undefined,
      )
      return isIssued ? responseUriTo(request, { code }) : null
    },

    async mayRedirectTo(app, signedIn) {
      if (!isSelfDescribed(app.id)) return true
      return signedIn !== null && covers(await store.consents.find(signedIn.user.id, app.id), app, [])
    },

    refuse: (to, { error, description }) => responseUriTo(to, { error, error_description: description }),
  }

  /**
   * The refusal if this person was issued too many codes, or null. Each code stores a row, and its redemption a
   * session. Without a limit, an app that needs no consent could cause any number of them.
   */
  function tooManyCodes(userId: string): Refusal | null {
    try {
      deps.changeLimits.count(`code:${userId}`)
      return null
    } catch (error) {
      if (!(error instanceof KeywayError)) throw error
      return { error: 'temporarily_unavailable', description: error.message }
    }
  }

  /** `iss` (RFC 9207) tells a client of several servers which one answers. */
  function responseUriTo(
    { redirectUri, state }: { redirectUri: string; state: string | null },
    params: Record<string, string>,
  ): string {
    return responseUri(redirectUri, { ...params, state, iss: publicUrl })
  }

  /** Whether the sign-in is as recent as the app asks for, or was made for this request. */
  function isFresh({ request, firstSentAt }: BrowserRequest, { session }: SignedIn): boolean {
    if (session.createdAt >= firstSentAt) return true
    const { prompts, maxAge } = request
    if (prompts.includes('login') || prompts.includes('select_account')) return false
    return maxAge === null || clock.now() < session.createdAt + maxAge * 1000
  }

  /**
   * Whether the signed-in person is the one whom the `id_token_hint` names (OpenID Connect Core section 3.1.2.2). A
   * hint that this service did not issue is ignored.
   */
  async function isHintedPerson({ idTokenHint }: AuthorizationRequest, { user }: SignedIn): Promise<boolean> {
    const hintedToken = idTokenHint === null ? null : await readIdToken(deps.jwt, idTokenHint)
    return hintedToken === null || hintedToken.userId === user.id
  }

  /** The scopes for which to ask the person's consent; null if the person need not be asked. */
  async function missingConsent(request: AuthorizationRequest, userId: string): Promise<string[] | null> {
    const scopes = grantedScopes(request)
    if (!needsConsent(request.app)) return null
    const consent = await store.consents.find(userId, request.app.id)
    const mustAsk = request.prompts.includes('consent') || isForOtherService(request)
    return covers(consent, request.app, scopes) && !mustAsk ? null : scopes
  }
}

/**
 * Whether a client that describes itself asks for a token for another app's service. A stored consent does not say for
 * which services it is, so the person is asked each time, on a page that names the service.
 */
function isForOtherService({ app, audience }: AuthorizationRequest): boolean {
  return audience !== null && isSelfDescribed(app.id)
}

/**
 * The scopes to grant: those that were requested, but `offline_access` only if the request asks for the person's
 * consent (OpenID Connect Core section 11) or the app needs no consent.
 */
export function grantedScopes({ app, scopes, prompts }: AuthorizationRequest): string[] {
  const mayBeOffline = !needsConsent(app) || prompts.includes('consent')
  return scopes.filter(scope => scope !== 'offline_access' || mayBeOffline)
}

function refused(error: string, description: string): { refusal: Refusal } {
  return { refusal: { error, description } }
}
