import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Session } from '../sessions/session.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { User } from '../users/user.ts'

/** Lifetime of an id token. Short, since the client reads the token when it arrives. */
const ID_TOKEN_SECONDS = 900
/** `amr`: the link and the code of a mail are one-time passwords (RFC 8176). */
const AMR = ['otp']

export interface IdTokenDeps {
  jwt: Jwt
  clock: Clock
  publicUrl: string
}

/** The claims of an id token of this service, which may have expired. */
export interface IssuedIdToken {
  userId: string
  appId: string
  sessionId: string
}

/**
 * Reads an `id_token_hint` (OpenID Connect Core section 3.1.2.1), even if it has expired. Null for a token that is no
 * id token of this service, or whose signing key was retired.
 */
export async function readIdToken(jwt: Jwt, token: string): Promise<IssuedIdToken | null> {
  const claims = await jwt.readIssued(token, 'JWT')
  if (claims?.type !== 'id') return null
  return { userId: String(claims.sub), appId: String(claims.aud), sessionId: String(claims.sid) }
}

/** The claims about a person that these scopes give (OpenID Connect Core section 5.4). */
export function claimsAbout(user: User, scopes: readonly string[]): Record<string, unknown> {
  return {
    sub: user.id,
    ...(scopes.includes('email') && user.email !== null && { email: user.email, email_verified: true }),
    ...(scopes.includes('profile') && user.name !== null && { name: user.name }),
    ...(scopes.includes('profile') && user.locale !== null && { locale: user.locale }),
  }
}

/**
 * An id token for the app of a session (OpenID Connect Core section 2). `sid` is the id of that session, which logout
 * tokens name when it ends.
 *
 * @param nonce the nonce of the authorization request; null if it had none, or if the tokens are refreshed
 */
export function signIdToken(
  { jwt, clock, publicUrl }: IdTokenDeps,
  { user, session, alg }: { user: User; session: Session; alg: SigningAlg },
  nonce: string | null,
): Promise<string> {
  const now = clock.now()
  const issuedAt = Math.floor(now / 1000)
  return jwt.signAs(alg, 'JWT', {
    // With this type no endpoint accepts the token as an access token.
    type: 'id',
    iss: publicUrl,
    aud: session.appId,
    ...claimsAbout(user, session.grant?.scopes ?? []),
    auth_time: Math.floor(session.authTime / 1000),
    amr: AMR,
    ...(nonce !== null && { nonce }),
    sid: session.id,
    iat: issuedAt,
    exp: issuedAt + ID_TOKEN_SECONDS,
    jti: newId(now),
  })
}
