import { LANGUAGES } from '../languages/languages.ts'
import type { Metadata } from './grant.ts'

/** The members of the discovery document about the sign-in of people to apps. */
export function signInMetadata(issuer: string): Metadata {
  return {
    authorization_endpoint: `${issuer}/oauth/authorize`,
    pushed_authorization_request_endpoint: `${issuer}/oauth/par`,
    userinfo_endpoint: `${issuer}/oauth/userinfo`,
    end_session_endpoint: `${issuer}/oauth/logout`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    authorization_response_iss_parameter_supported: true,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
    ui_locales_supported: Object.values(LANGUAGES).map(({ tag }) => tag),
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256', 'ES256', 'EdDSA'],
    claims_supported: [
      'iss',
      'sub',
      'aud',
      'exp',
      'iat',
      'auth_time',
      'amr',
      'nonce',
      'sid',
      'email',
      'email_verified',
      'locale',
      'name',
    ],
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
  }
}
