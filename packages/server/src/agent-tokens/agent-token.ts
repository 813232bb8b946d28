import { type Instant, SECOND } from '../clock.ts'

/** The header type and the `type` claim: neither an access token nor anything else is taken for it. */
export const AGENT_TOKEN_TYPE = 'agent_ws'
/** Seconds. Short, so that what leaks is soon worth nothing; a live connection renews in place. */
export const AGENT_TOKEN_SECONDS = 900

export interface AgentTokenTimes {
  /** Whole seconds since 1970 (RFC 7519 NumericDate). */
  issuedAt: number
  expiresAt: number
  /** Whole seconds that are left of it, at least 1. */
  expiresIn: number
}

/**
 * The times of a token that is issued now and ends with its key. A key may end between two seconds and a token
 * cannot: the token has the second that the key ends in, so that a key works up to its last millisecond. The
 * hub and introspection know the key's own end and go by that.
 */
export function agentTokenTimes(keyExpiresAt: Instant | null, now: Instant): AgentTokenTimes {
  const issuedAt = Math.floor(now / SECOND)
  const whole = issuedAt + AGENT_TOKEN_SECONDS
  const keyEnd = keyExpiresAt === null ? whole : Math.ceil(keyExpiresAt / SECOND)
  if (keyEnd >= whole) return { issuedAt, expiresAt: whole, expiresIn: AGENT_TOKEN_SECONDS }
  const left = Math.floor((keyExpiresAt! - now) / SECOND)
  return { issuedAt, expiresAt: keyEnd, expiresIn: Math.max(1, left) }
}

/** Where agent tokens lead unless another audience is asked for. */
export function hubAudience(publicUrl: string): string {
  return `${publicUrl}/hub`
}
