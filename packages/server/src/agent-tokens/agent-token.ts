import { type Instant, SECOND } from '../clock.ts'

/** The header type and the `type` claim: neither an access token nor anything else is taken for it. */
export const AGENT_TOKEN_TYPE = 'agent_ws'
/** Seconds. Short, so that what leaks is soon worth nothing; a live connection renews in place. */
export const AGENT_TOKEN_SECONDS = 900

export interface AgentTokenTimes {
  /** Whole seconds since 1970 (RFC 7519 NumericDate). */
  issuedAt: number
  expiresAt: number
  /** Whole seconds that are left of it; below 1 there is no token. */
  expiresIn: number
}

/** The times of a token that is issued now and never outlives its key. */
export function agentTokenTimes(keyExpiresAt: Instant | null, now: Instant): AgentTokenTimes {
  const issuedAt = Math.floor(now / SECOND)
  const whole = issuedAt + AGENT_TOKEN_SECONDS
  const keyEnd = keyExpiresAt === null ? whole : Math.floor(keyExpiresAt / SECOND)
  if (keyEnd >= whole) return { issuedAt, expiresAt: whole, expiresIn: AGENT_TOKEN_SECONDS }
  return { issuedAt, expiresAt: keyEnd, expiresIn: Math.floor((keyEnd * SECOND - now) / SECOND) }
}

/** Where agent tokens lead unless another audience is asked for. */
export function hubAudience(publicUrl: string): string {
  return `${publicUrl}/hub`
}
