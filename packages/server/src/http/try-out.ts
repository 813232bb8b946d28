import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { SignedIn } from '../sessions/session.ts'
import type { Meter } from '../usage/meter.ts'
import { assertMayAdminister, isAdministrative } from './administrator.ts'
import type { Answer } from './answer.ts'
import type { Principal } from './authenticate.ts'
import { parseJson } from './body.ts'
import { createParamsReader } from './path-params.ts'
import { readQuery } from './query.ts'
import type { Route } from './route.ts'
import { validate } from './validation.ts'

/** A call that a person filled in on a documentation page, without the fields that were left empty. */
export interface FilledInCall {
  operation: string
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  /** The body as JSON text. */
  body: string
}

export interface RequestContext {
  caller: Caller
  requestId: string
  incoming: IncomingMessage
}

export interface TryOut {
  /** Whether the documentation offers to run the operation. */
  mayTry(operation: string): boolean
  /**
   * Runs a call for the person who is signed in on the pages: with the same rights, validation, usage and audit records
   * as a call with an access token of that session, but without a token. Any error is returned as an answer; the error
   * for an operation that is not offered is `forbidden`.
   */
  call(filledInCall: FilledInCall, signedIn: SignedIn, context: RequestContext): Promise<Answer>
}

/**
 * Operations other than reads that the documentation offers to run: changes of a person's own data, and messages to the
 * person's agents. None of them creates, shows or ends a credential.
 */
const OFFERED_WRITES = ['updateAccount', 'updateApiKey', 'sendToAgent']
/** Downloads, which a page cannot show. All other reads under `/v1/` that a person may call are offered. */
const NOT_OFFERED_READS = ['exportAccount', 'exportUser']

export function createTryOut({
  routes,
  meter,
  clock,
  refusalOf,
}: {
  routes: readonly Route[]
  meter: Pick<Meter, 'count'>
  clock: Clock
  /** Converts what a call threw to an answer. */
  refusalOf(thrown: unknown, requestId: string): Answer
}): TryOut {
  const offeredRoutes = new Map(routes.filter(isOffered).map(route => [route.operation, route]))

  return {
    mayTry: operation => offeredRoutes.has(operation),
    async call(filledInCall, signedIn, context) {
      try {
        return await runCall(filledInCall, signedIn, context)
      } catch (error) {
        return refusalOf(error, context.requestId)
      }
    },
  }

  async function runCall(
    { operation, params, query, body }: FilledInCall,
    { user, session }: SignedIn,
    context: RequestContext,
  ): Promise<Answer> {
    const route = offeredRoutes.get(operation)
    if (!route) throw new KeywayError('forbidden', 'This call is not offered here.')
    if (isAdministrative(route.access)) assertMayAdminister(route.access, user, session, clock.now())
    meter.count(user.id, null, 'apiCalls')
    const principal: Principal = { userId: user.id, keyId: null, session }
    return await route.handle({
      principal,
      params: createParamsReader(route.path)(name => params[name]?.trim()),
      query: route.query && validate(route.query, readQuery(`?${query}`)),
      body: route.body && validate(route.body, parseJson(Buffer.from(body), route.maxJsonValues) ?? {}),
      bytes: undefined,
      idempotencyKey: null,
      ...context,
      reauthenticate: async () => principal,
    })
  }
}

function isOffered({ method, path, access, operation, idempotencyKey }: Route): boolean {
  if (access === 'public' || access === 'app' || !path.startsWith('/v1/')) return false
  if (method === 'GET') return !NOT_OFFERED_READS.includes(operation)
  return OFFERED_WRITES.includes(operation) && idempotencyKey === undefined
}
