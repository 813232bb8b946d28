import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Log } from '../log.ts'

/** Refusals that whoever watches for attacks wants to see. A malformed request is none of them. */
const OF_CONCERN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'account_suspended',
  'api_key_expired',
  'api_key_revoked',
  'charge_not_authorized',
  'forbidden',
  'insufficient_scope',
  'invalid_api_key',
  'invalid_refresh_token',
  'invalid_token',
  'magic_link_expired',
  'magic_link_invalid',
  'magic_link_used',
  'network_not_allowed',
  'rate_limited',
  'refresh_token_reused',
  'session_required',
])
interface Refused {
  code: ErrorCode
  /** The operation, as documented. */
  route: string
  network: string
  request_id: string
}

export interface RequestLog {
  /** Every answer, at `debug`: `info` has no line for a request that went well. */
  answered(request: { request_id: string; route: string; status: number; ms: number }): void
  /** Refused credentials, rights and limits, at `info`: who (by network), what, why; never with what. */
  refused(refused: Refused): void
}

/** What the operator reads of requests. log.ts bounds the lines of each code. */
export function createRequestLog(log: Log): RequestLog {
  return {
    answered: request => log.debug(request, 'request'),
    refused(refused) {
      if (OF_CONCERN.has(refused.code)) log.info(refused, 'refused')
    },
  }
}
