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
  /** Logs every response at `debug`; `info` has no lines for successful requests. */
  answered(request: { request_id: string; route: string; status: number; ms: number }): void
  /** Logs refused credentials, missing rights and exceeded limits at `info`, never with the credential. */
  refused(refused: Refused): void
}

/** log.ts limits the number of lines per code. */
export function createRequestLog(log: Log): RequestLog {
  return {
    answered: request => log.debug(request, 'request'),
    refused(refused) {
      if (PROBLEMS[refused.code].isLogged) log.info(refused, 'refused')
    },
  }
}
