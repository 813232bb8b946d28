import { PERSONAL_SCOPES } from '../apps/app.ts'
import { OPERATOR_GRANTED_SCOPES } from '../apps/app-settings.ts'
import { ASSERTION_ALGS, CLIENT_AUTH_METHODS } from './client-authentication.ts'
import type { Metadata } from './grant.ts'
import { GRANT_TYPES } from './grants.ts'

/** The discovery document: what the endpoints and the table of grants support, and nothing else. */
export function metadataOf(issuer: string, more: Metadata): Metadata {
  const ofGrants = Object.values(GRANT_TYPES).map(({ metadata }) => metadata?.(issuer) ?? {})
  return [ofService(issuer), ...ofGrants, more].reduce(merged)
}

function ofService(issuer: string): Metadata {
  return {
    issuer,
    token_endpoint: `${issuer}/oauth/token`,
    introspection_endpoint: `${issuer}/oauth/introspect`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    service_documentation: `${issuer}/docs`,
    scopes_supported: [...PERSONAL_SCOPES, ...OPERATOR_GRANTED_SCOPES],
    response_types_supported: [],
    grant_types_supported: Object.keys(GRANT_TYPES),
    token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGS,
    introspection_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS.filter(method => method !== 'none'),
    introspection_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGS,
    revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGS,
  }
}

/** Merges members of several documents; lists are joined. */
function merged(all: Metadata, more: Metadata): Metadata {
  const joined = Object.entries(more).map(([name, value]) => {
    const known = all[name]
    const isList = Array.isArray(known) && Array.isArray(value)
    return [name, isList ? [...new Set([...known, ...value])] : value]
  })
  return { ...all, ...Object.fromEntries(joined) }
}
