import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Log } from '../log.ts'
import { PROBLEMS } from '../problems.ts'

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

/** The log of requests. log.ts limits the lines of each code. */
export function createRequestLog(log: Log): RequestLog {
  return {
    answered: request => log.debug(request, 'request'),
    refused(refused) {
      if (PROBLEMS[refused.code].isLogged) log.info(refused, 'refused')
    },
  }
}
