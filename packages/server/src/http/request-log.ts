import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Log } from '../log.ts'
import { PROBLEMS } from '../problems.ts'

interface RefusedRequest {
  code: ErrorCode
  /** The `operation` of the route. */
  route: string
  network: string
  request_id: string
}

export interface RequestLog {
  /** Logs a response at `debug`; at `info` successful requests have no lines. */
  logAnswer(request: { request_id: string; route: string; status: number; ms: number }): void
  /**
   * Logs a refusal at `info` if a credential, a right or a limit is its reason, never with the credential. Does not log
   * other refusals.
   */
  logRefusal(refused: RefusedRequest): void
}

/** Has no rate limit of its own: log.ts limits the number of lines per error code. */
export function createRequestLog(log: Log): RequestLog {
  return {
    logAnswer: request => log.debug(request, 'request'),
    logRefusal(refused) {
      if (PROBLEMS[refused.code].isLogged) log.info(refused, 'refused')
    },
  }
}
