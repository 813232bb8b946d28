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
  /** Logs every response at `debug`; `info` has no lines for successful requests. */
  logAnswer(request: { request_id: string; route: string; status: number; ms: number }): void
  /** Logs refused credentials, missing rights and exceeded limits at `info`, never with the credential. */
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
