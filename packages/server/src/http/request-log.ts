import type { ErrorCode } from '@keyway/sdk/protocol'
import { type Clock, SECOND } from '../clock.ts'
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
/** Lines a second; a flood is counted instead, so that nobody outside can fill the disk. */
const MAX_LINES_PER_SECOND = 20

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

/** What the operator reads of requests. */
export function createRequestLog({ log, clock }: { log: Log; clock: Clock }): RequestLog {
  let second = 0
  let lines = 0
  let untold = 0

  return {
    answered: request => log.debug(request, 'request'),
    refused(refused) {
      if (!OF_CONCERN.has(refused.code)) return
      const now = Math.floor(clock.now() / SECOND)
      if (now !== second) {
        if (untold > 0) log.warn({ untold }, 'more refusals than are told one by one')
        second = now
        lines = 0
        untold = 0
      }
      if (lines++ < MAX_LINES_PER_SECOND) log.info(refused, 'refused')
      else untold++
    },
  }
}
