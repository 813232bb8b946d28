import type { App } from '../apps/app.ts'
import { toRfc3339 } from '../clock.ts'

/** The JSON form of an app for the operator. It has no secrets, since only their hashes are stored. */
export function appObject(app: App) {
  return {
    id: app.id,
    name: app.name,
    first_party: app.firstParty,
    audience: app.audience,
    verify_url: app.verifyUrl,
    redirect_uris: [...app.redirectUris],
    logout_uris: [...app.logoutUris],
    backchannel_logout_uri: app.backchannelLogoutUri,
    token_alg: app.tokenAlg,
    id_token_alg: app.idTokenAlg,
    scopes: [...app.scopes],
    trusted: app.trusted,
    public: app.isPublic,
    jwks_uri: app.jwksUri,
    require_pkce: app.requirePkce,
    created_at: toRfc3339(app.createdAt),
    /** The app has rights over keys and sessions with its id that were created from this time on; null: over all. */
    covers_from: app.coversFrom === 0 ? null : toRfc3339(app.coversFrom),
  }
}
