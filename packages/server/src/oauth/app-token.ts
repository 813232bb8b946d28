import type { App } from '../apps/app.ts'
import { type Clock, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { TokenAnswer } from './grant.ts'

/** Lifetime in seconds, as short as that of agent tokens, since tokens of apps for themselves cannot be revoked. */
export const APP_TOKEN_SECONDS = 900

/**
 * Signs a JWT (RFC 9068) with `type: "app"`, whose subject is the app `client` itself and not a person. Its audience is
 * that of the app `target`, never this service.
 */
export async function signAppToken(
  { jwt, clock, publicUrl }: { jwt: Jwt; clock: Clock; publicUrl: string },
  client: Pick<App, 'id'>,
  target: Pick<App, 'audience' | 'tokenAlg'>,
  scopes: readonly string[],
): Promise<TokenAnswer> {
  const now = clock.now()
  const issuedAt = Math.floor(now / SECOND)
  const scope = scopes.join(' ')
  const token = await jwt.signAs(target.tokenAlg, 'at+jwt', {
    type: 'app',
    iss: publicUrl,
    aud: target.audience,
    sub: client.id,
    client_id: client.id,
    scope,
    iat: issuedAt,
    exp: issuedAt + APP_TOKEN_SECONDS,
    jti: newId(now),
  })
  return { access_token: token, token_type: 'Bearer', expires_in: APP_TOKEN_SECONDS, scope }
}
