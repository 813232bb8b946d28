import type { Grant, GrantDeps, Metadata } from './grant.ts'
import { signInMetadata } from './sign-in-metadata.ts'

interface GrantType {
  /** The members that this grant adds to the discovery document. */
  metadata?: (issuer: string) => Metadata
  /** Loads the module of the grant, on its first use. */
  load(): Promise<(deps: GrantDeps) => Grant>
}

export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

/** The grant types of the token endpoint. The discovery document is generated from this table. */
export const GRANT_TYPES: Record<string, GrantType> = {
  authorization_code: {
    metadata: signInMetadata,
    load: async () => (await import('./authorization-code.ts')).createAuthorizationCodeGrant,
  },
  refresh_token: {
    load: async () => (await import('./refresh-token.ts')).createRefreshTokenGrant,
  },
  client_credentials: {
    load: async () => (await import('./client-credentials.ts')).createClientCredentialsGrant,
  },
  [DEVICE_CODE]: {
    metadata: issuer => ({ device_authorization_endpoint: `${issuer}/oauth/device` }),
    load: async () => (await import('./device-code.ts')).createDeviceCodeGrant,
  },
  [TOKEN_EXCHANGE]: {
    load: async () => (await import('./token-exchange.ts')).createTokenExchangeGrant,
  },
}
