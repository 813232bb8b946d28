import type { Instant } from '../clock.ts'
import { newId, parseId } from '../ids.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { User } from '../users/user.ts'
import type { Session } from './session.ts'

/** RFC 9068 section 2.1. */
const TYP = 'at+jwt'

/**
 * A JWT for this service's own API (RFC 9068). It never outlives its session.
 *
 * @param seconds its longest lifetime
 */
export function signAccessToken(
  { jwt, publicUrl }: { jwt: Jwt; publicUrl: string },
  user: User,
  session: Session,
  seconds: number,
  now: Instant,
): { accessToken: string; expiresIn: number } {
  const issuedAt = Math.floor(now / 1000)
  const expiresAt = Math.min(issuedAt + seconds, Math.floor(session.expiresAt / 1000))
  const accessToken = jwt.sign(TYP, {
    type: 'access',
    iss: publicUrl,
    aud: publicUrl,
    sub: user.id,
    client_id: session.appId,
    sid: session.id,
    role: user.role,
    iat: issuedAt,
    exp: expiresAt,
    jti: newId(now),
  })
  return { accessToken, expiresIn: Math.max(0, expiresAt - issuedAt) }
}

/** The session and user that a valid access token names; null where signature, audience or times are wrong. */
export async function readAccessToken(
  { jwt, publicUrl }: { jwt: Jwt; publicUrl: string },
  token: string,
): Promise<{ sessionId: string; userId: string } | null> {
  const claims = await jwt.verify(token, { typ: TYP, audience: publicUrl })
  if (claims?.type !== 'access' || typeof claims.sid !== 'string' || typeof claims.sub !== 'string')
    return null
  const sessionId = parseId(claims.sid)
  return sessionId ? { sessionId, userId: claims.sub } : null
}
