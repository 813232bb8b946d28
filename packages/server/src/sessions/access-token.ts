import type { Instant } from '../clock.ts'
import { newId, parseId } from '../ids.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { User } from '../users/user.ts'
import type { Session } from './session.ts'

/** The header `typ` of access tokens (RFC 9068 section 2.1). */
const TYP = 'at+jwt'

interface UnsignedAccessToken {
  claims: Record<string, unknown>
  expiresIn: number
}

interface AccessToken {
  accessToken: string
  /** The lifetime in seconds. */
  expiresIn: number
}

/**
 * The claims of an access token (RFC 9068): for this service's own API, or for the audience that an app asked for. The
 * token never outlives its session. Tokens of apps always have a `scope`, which may be empty.
 *
 * @param seconds the maximum lifetime of the token
 */
export function accessTokenOf(
  { publicUrl }: { publicUrl: string },
  user: User,
  session: Session,
  seconds: number,
  now: Instant,
): UnsignedAccessToken {
  const issuedAt = Math.floor(now / 1000)
  const expiresAt = Math.min(issuedAt + seconds, Math.floor(session.expiresAt / 1000))
  const claims = {
    type: 'access',
    iss: publicUrl,
    aud: session.grant?.audience ?? publicUrl,
    sub: user.id,
    client_id: session.appId,
    ...(session.grant && { scope: session.grant.scopes.join(' ') }),
    sid: session.id,
    role: user.role,
    iat: issuedAt,
    exp: expiresAt,
    jti: newId(now),
  }
  return { claims, expiresIn: Math.max(0, expiresAt - issuedAt) }
}

export function signAccessToken(
  { jwt }: { jwt: Jwt },
  { claims, expiresIn }: UnsignedAccessToken,
): AccessToken {
  return { accessToken: jwt.sign(TYP, claims), expiresIn }
}

export async function signAccessTokenWith(
  { jwt }: { jwt: Jwt },
  alg: SigningAlg,
  { claims, expiresIn }: UnsignedAccessToken,
): Promise<AccessToken> {
  return { accessToken: await jwt.signAs(alg, TYP, claims), expiresIn }
}

/**
 * The session, user and scopes that a valid access token names; null if its signature, type, audience or times are
 * wrong.
 */
export async function readAccessToken(
  { jwt, publicUrl }: { jwt: Jwt; publicUrl: string },
  token: string,
  audience: string = publicUrl,
): Promise<{ sessionId: string; userId: string; scopes: string[] } | null> {
  const claims = await jwt.verify(token, { typ: TYP, audience })
  if (claims?.type !== 'access' || typeof claims.sid !== 'string' || typeof claims.sub !== 'string')
    return null
  const sessionId = parseId(claims.sid)
  const scopes = typeof claims.scope === 'string' ? claims.scope.split(' ') : []
  return sessionId ? { sessionId, userId: claims.sub, scopes } : null
}
