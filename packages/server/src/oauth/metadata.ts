import { PERSONAL_SCOPES } from '../apps/app.ts'
import { OPERATOR_GRANTED_SCOPES } from '../apps/app-settings.ts'
import { ASSERTION_ALGS, CLIENT_AUTH_METHODS } from './client-authentication.ts'
import type { Metadata } from './grant.ts'
import { GRANT_TYPES } from './grants.ts'

/** The discovery document: what this service and its grants support, and `more`, which depends on the settings. */
export function metadataOf(issuer: string, more: Metadata): Metadata {
  const grantMembers = Object.values(GRANT_TYPES).map(({ metadata }) => metadata?.(issuer) ?? {})
  return [serviceMembers(issuer), ...grantMembers, more].reduce(merge)
}

function serviceMembers(issuer: string): Metadata {
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

/** Merges the members of two documents. Lists of the same name are joined; otherwise the second document wins. */
function merge(first: Metadata, second: Metadata): Metadata {
  const mergedMembers = Object.entries(second).map(([name, value]) => {
    const firstValue = first[name]
    const areLists = Array.isArray(firstValue) && Array.isArray(value)
    return [name, areLists ? [...new Set([...firstValue, ...value])] : value]
  })
  return { ...first, ...Object.fromEntries(mergedMembers) }
}
