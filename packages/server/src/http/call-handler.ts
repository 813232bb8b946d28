import type { IncomingMessage } from 'node:http'
import type { Caller } from '../network.ts'
import { parseForm } from '../oauth/form.ts'
import type { Meter } from '../usage/meter.ts'
import type { Answer } from './answer.ts'
import type { Authenticate } from './authenticate.ts'
import { type BodyFormat, FORM_BODY, JSON_BODY, parseJson } from './body.ts'
import type { BodyIntake } from './body-intake.ts'
import { readIdempotencyKey } from './idempotency-key.ts'
import { readQuery } from './query.ts'
import { withRateLimits } from './rate-limit-fields.ts'
import type { Route, RouteInput } from './route.ts'
import { validate } from './validation.ts'
import type { WorkLimit } from './work-limit.ts'

type CallContext = Pick<RouteInput<'public', unknown, unknown>, 'incoming' | 'caller' | 'requestId'>

/** @throws KeywayError for a refused call */
export type CallHandler = (
  route: Route,
  context: CallContext,
  readParams: () => Record<string, string>,
) => Promise<Answer>

/**
 * Creates the function that handles API calls: it authenticates a call, counts it in the usage of its user, if it has
 * one, reads and validates its input, and runs the route's handler.
 */
export function createCallHandler({
  authenticate,
  intake,
  workLimit,
  meter,
}: {
  authenticate: Authenticate
  intake: BodyIntake
  workLimit: WorkLimit
  meter: Pick<Meter, 'count'>
}): CallHandler {
  return async (route, { incoming, caller, requestId }, readParams) => {
    const { access } = route
    const reauthenticate = () => authenticate(access, incoming, caller)
    const rawQuery = readQuery(incoming.url ?? '', route.credentialInUrl)
    const principal = access === 'public' ? null : await runLimited(route, caller, reauthenticate)
    if (principal && 'userId' in principal) meter.count(principal.userId, principal.keyId, 'apiCalls')
    const params = readParams()
    const idempotencyKey = readIdempotencyKey(incoming, route.idempotencyKey)
    const query = route.query && validate(route.query, rawQuery)
    const { maxBodyBytes = JSON_BODY.maxBytes, maxJsonValues } = route
    const readBytes = (format: BodyFormat) =>
      intake.read(incoming, caller.network, { ...format, maxBytes: maxBodyBytes })
    const readBody = async () =>
      sendsForm(route, incoming)
        ? fieldsOf(await readBytes(FORM_BODY), route.form!)
        : parseJson(await readBytes(JSON_BODY), maxJsonValues)
    const body = route.body && validate(route.body, (await readBody()) ?? {})
    route.raw?.validateHead({ params, incoming })
    const bytes = route.raw && (await intake.read(incoming, caller.network, route.raw.format))
    const input = {
      principal,
      body,
      bytes,
      query,
      params,
      idempotencyKey,
      caller,
      requestId,
      incoming,
      reauthenticate,
    }
    const answer = await runLimited(route, caller, () => route.handle(input))
    return principal && 'limits' in principal ? withRateLimits(answer, principal.limits) : answer
  }

  /**
   * Runs `work` within the work limit. Probes are exempt: an orchestrator would kill an overloaded node that does not
   * answer them, and so move its load to the other nodes.
   */
  function runLimited<Outcome>(
    { path }: Route,
    { network }: Caller,
    work: () => Outcome | Promise<Outcome>,
  ): Outcome | Promise<Outcome> {
    return isProbe(path) ? work() : workLimit.run(network, work)
  }
}

function sendsForm({ form }: Route, incoming: IncomingMessage): boolean {
  if (!form) return false
  return form.only ?? FORM_BODY.mediaType.test(incoming.headers['content-type'] ?? '')
}

/**
 * Converts a form to the fields of a JSON body. Of the fields that `numbers` names, those that contain a whole number
 * become numbers; validation refuses the others.
 */
function fieldsOf(body: Buffer, { numbers = [] }: NonNullable<Route['form']>): Record<string, unknown> {
  const form: Record<string, unknown> = { ...parseForm(body) }
  for (const name of numbers) {
    const text = form[name]
    if (typeof text === 'string' && /^-?\d{1,15}$/.test(text)) form[name] = Number(text)
  }
  return form
}

/** Whether load balancers and orchestrators poll this path to learn whether the node works. */
export function isProbe(path: string | undefined): path is '/livez' | '/readyz' {
  return path === '/livez' || path === '/readyz'
}
