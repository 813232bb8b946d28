import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import type { ErrorCode } from '@keyway/sdk/protocol'
import { type Context, Hono } from 'hono'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { SendWindow } from '../magic-links/send-limits.ts'
import type { Caller } from '../network.ts'
import { newRequestId, REQUEST_ID_HEADER } from '../request-id.ts'
import type { SessionLifetimes } from '../sessions/session-lifetime.ts'
import { createAllowedMethods, methodNotAllowed } from './allowed-methods.ts'
import { type Answer, toResponse, writeAnswer } from './answer.ts'
import { createAuthenticate } from './authenticate.ts'
import { FORM_BODY, JSON_BODY, parseJson } from './body.ts'
import { createBodyIntake, type IntakeLimits } from './body-intake.ts'
import type { Callers } from './caller.ts'
import { createCors } from './cors.ts'
import { docsPage } from './docs-page.ts'
import { toKeywayError, toProblem } from './errors.ts'
import { createFailureLimits, type FailureLimits } from './failure-limits.ts'
import { createFairQueue, type Flow } from './fair-queue.ts'
import type { HttpPorts, MetricsSource, ObservedAnswer, PageBindings, PagesApp } from './http-ports.ts'
import { readIdempotencyKey } from './idempotency-key.ts'
import { loopbackRedirect } from './loopback-redirect.ts'
import { notFound } from './not-found.ts'
import { createOpenApi } from './openapi.ts'
import { readParams } from './path-params.ts'
import { readQuery } from './query.ts'
import { createRequestLog } from './request-log.ts'
import { paramNames, type Route, type RouteInput } from './route.ts'
import { createRoutes, isApiPath } from './routes/routes.ts'
import { validate } from './validation.ts'
import { createWorkLimit } from './work-limit.ts'
import { type Challenge, challengeOf } from './www-authenticate.ts'

export interface AppOptions {
  services: HttpPorts
  clock: Clock
  log: Log
  version: string
  /** Base of all URLs in responses; never taken from the request's Host. */
  publicUrl: string
  corsOrigins: readonly string[]
  /** Who asks; the pages are given the same. */
  callers: Callers
  failureLimits: readonly SendWindow[]
  /** Where failures are counted, shared with the pages; its own by default. */
  limits?: FailureLimits
  /** Whether mail goes to the local inbox. */
  hasInbox: boolean
  lifetimes: SessionLifetimes
  /** The web pages. They handle paths that no API route has, and requests that a route passes on. */
  pages?: PagesApp
  /** Called after every answer, for metrics. */
  observe?: (answer: ObservedAnswer) => void
  /** Calls worked on at once; see work-limit.ts. */
  maxWorkedOn?: number
  /** What arriving bodies may take; see body-intake.ts. */
  intake?: IntakeLimits
  /** Without it there is no `GET /metrics`. */
  metrics?: MetricsSource
  metricsToken: string | null
}

type Bindings = { Bindings: HttpBindings }
type HttpContext = Context<Bindings>

/** Enough of a credential to tell it from all others. */
const MAX_FLOW_ID_LENGTH = 64

/** Methods that are used as metric labels; unknown ones are not, since clients can make them up. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The form that came with a request. @throws KeywayError as it was refused */
export function formOf({ form }: PageBindings): Buffer {
  if (form instanceof KeywayError) throw form
  return form ?? Buffer.alloc(0)
}

export interface HttpApp {
  fetch(request: Request, env: HttpBindings): Response | Promise<Response>
  /**
   * Answers a JSON call to a path without parameters by itself, past the router and its Request and Response
   * objects, with the same steps in the same order. False: it is no such call, and nothing was touched.
   */
  serveDirectly(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  /**
   * Calls `begin` when it is this request's turn (fair-queue.ts), unless `connection` was closed before. False: too
   * many of its flow wait, and it never is.
   */
  admit(incoming: IncomingMessage, connection: Pick<EventEmitter, 'once'>, begin: () => void): boolean
  /** Counts a refusal of the client's network that the app did not answer itself, of an upgrade. */
  countRefusal(incoming: IncomingMessage): void
  /** Every route of the API, as documented. */
  readonly routes: readonly Route[]
}

/** The HTTP layer: one pipeline from request to response, without middleware. */
export function createApp(options: AppOptions): HttpApp {
  const { callers, clock, log, publicUrl, pages, observe } = options
  const workLimit = createWorkLimit(options.maxWorkedOn)
  const intake = createBodyIntake(options.intake)
  const fairQueue = createFairQueue()
  const cors = createCors(options.corsOrigins)
  const limits = options.limits ?? createFailureLimits({ clock, windows: options.failureLimits })
  const authenticate = createAuthenticate(options.services)
  const requestLog = createRequestLog(log)
  const routes = createRoutes({
    ...options,
    assertMayGuess: limits.assertMayGuess,
    proxyMistake: () => callers.proxyMistake,
    isLocal: incoming => callers.isLocal(incoming),
    openApi: () => createOpenApi(routes, options),
    docs: () => docsPage(routes, options),
  })
  const allowedMethods = createAllowedMethods(routes)

  const app = new Hono<Bindings>({ strict: true })
  for (const declared of routes) {
    const names = paramNames(declared.path)
    app.on(declared.method, declared.path.replaceAll(/\{(\w+)\}/g, ':$1'), context =>
      serve(declared, names, context),
    )
  }
  app.notFound(context => serveUnrouted(context))
  app.onError((error, context) => {
    const requestId = newRequestId(clock.now())
    return refuse(toKeywayError(error, requestId, log), requestId, 'none', context)
  })
  const direct = new Map(routes.filter(isDirect).map(declared => [declared.path, declared]))
  return { fetch: (request, env) => app.fetch(request, env), serveDirectly, admit, countRefusal, routes }

  function admit(
    incoming: IncomingMessage,
    connection: Pick<EventEmitter, 'once'>,
    begin: () => void,
  ): boolean {
    return fairQueue.start(() => flowOf(incoming, connection), begin)
  }

  function flowOf(incoming: IncomingMessage, connection: Pick<EventEmitter, 'once'>): Flow {
    const { network } = callers.of(incoming)
    const { url, headers } = incoming
    return {
      // The end of a token is its own; its beginning is that of all. A probe waits behind no other request of its
      // network, which may be that of all clients behind a proxy.
      id: isProbe(url) ? url : (headers.authorization?.slice(-MAX_FLOW_ID_LENGTH) ?? ''),
      network,
      whenGone: drop => connection.once('close', drop),
    }
  }

  function countRefusal(incoming: IncomingMessage): void {
    fairQueue.refused(callers.of(incoming).network)
  }

  async function serve(declared: Route, names: readonly string[], context: HttpContext): Promise<Response> {
    const { incoming } = context.env
    const requestId = newRequestId(clock.now())
    const isPage = pages !== undefined && declared.leftToPages?.(incoming)
    const params = () => readParams(names, name => context.req.param(name))
    const answered = await observed<Answer | Response>(declared, incoming, requestId, caller =>
      isPage
        ? servePage(context, caller, requestId)
        : handle(declared, { incoming, caller, requestId }, params),
    )
    return answered instanceof Response ? answered : toResponse(answered, requestId, cors.headers(incoming))
  }

  function serveDirectly(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const declared = incoming.method === 'POST' ? direct.get(incoming.url ?? '') : undefined
    if (!declared) return false
    const requestId = newRequestId(clock.now())
    observed(declared, incoming, requestId, caller =>
      handle(declared, { incoming, caller, requestId }, noParams),
    )
      .then(answer => writeAnswer(outgoing, answer, requestId, cors.headers(incoming)))
      .catch(error => {
        log.error({ request_id: requestId, err: error }, 'an answer could not be written')
        outgoing.destroy()
      })
    return true
  }

  /** Runs a call, converts errors to responses, and updates metrics and log. */
  async function observed<Answered extends Answer | Response>(
    declared: Route,
    incoming: IncomingMessage,
    requestId: string,
    run: (caller: Caller) => Promise<Answered>,
  ): Promise<Answered | Answer> {
    const startedAt = performance.now()
    const caller = callers.of(incoming)
    let answered: Answered | Answer
    let code: ErrorCode | null = null
    try {
      answered = await run(caller)
    } catch (thrown) {
      const error = toKeywayError(thrown, requestId, log)
      const refusal = declared.countsFailures ? limits.refusal(caller, error) : error
      code = refusal.code
      fairQueue.refused(caller.network)
      requestLog.refused({ code, route: declared.operation, network: caller.network, request_id: requestId })
      answered = problemOf(refusal, requestId, challengeOf(declared))
    }
    const milliseconds = performance.now() - startedAt
    const { status } = answered
    requestLog.answered({
      request_id: requestId,
      route: declared.operation,
      status,
      ms: Math.round(milliseconds),
    })
    observe?.({ method: declared.method, route: declared.path, status, milliseconds, code })
    return answered
  }

  async function handle(
    declared: Route,
    request: Pick<RouteInput<'public', unknown, unknown>, 'incoming' | 'caller' | 'requestId'>,
    readParams: () => Record<string, string>,
  ): Promise<Answer> {
    const { incoming, caller, requestId } = request
    const rawQuery = readQuery(incoming.url ?? '', declared.credentialInUrl)
    const { access } = declared
    const principal =
      access === 'public'
        ? null
        : await working(declared, caller, () => authenticate(access, incoming, caller))
    const params = readParams()
    const idempotencyKey = readIdempotencyKey(incoming, declared.idempotencyKey)
    const query = declared.query && validate(declared.query, rawQuery)
    const body = declared.body && validate(declared.body, (await readJson(declared, incoming, caller)) ?? {})
    declared.raw?.admit({ params, incoming })
    const bytes = declared.raw && (await intake.read(incoming, caller.network, declared.raw.format))
    const reauthenticate = () => authenticate(access, incoming, caller)
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
    return working(declared, caller, () => declared.handle(input))
  }

  async function readJson(
    { maxJsonValues, maxBodyBytes }: Route,
    incoming: IncomingMessage,
    { network }: Caller,
  ): Promise<unknown> {
    const format = maxBodyBytes === undefined ? JSON_BODY : { ...JSON_BODY, maxBytes: maxBodyBytes }
    return parseJson(await intake.read(incoming, network, format), maxJsonValues)
  }

  /** A busy node is alive: killing it for its load would pass the load on to the next, so probes always pass. */
  function working<Outcome>(
    { path }: Route,
    { network }: Caller,
    work: () => Outcome | Promise<Outcome>,
  ): Outcome | Promise<Outcome> {
    return isProbe(path) ? work() : workLimit.during(network, work)
  }

  function problemOf(error: KeywayError, requestId: string, challenge: Challenge): Answer {
    return toProblem(error, { requestId, publicUrl, challenge, namesSettings: options.hasInbox })
  }

  function refuse(
    error: KeywayError,
    requestId: string,
    challenge: Challenge,
    context: HttpContext,
  ): Response {
    const problem = problemOf(error, requestId, challenge)
    return toResponse(problem, requestId, cors.headers(context.env.incoming))
  }

  /** A path of ours under another method, a page, or nothing. */
  async function serveUnrouted(context: HttpContext): Promise<Response> {
    const startedAt = performance.now()
    const response = await answerUnrouted(context)
    const isPage = pages !== undefined && !isApiPath(context.req.path) && response.status !== 404
    if (response.status >= 400) fairQueue.refused(callers.of(context.env.incoming).network)
    observe?.({
      method: METHODS.has(context.req.method) ? context.req.method : 'OTHER',
      route: isPage ? 'pages' : 'unknown',
      status: response.status,
      milliseconds: performance.now() - startedAt,
      code: null,
    })
    return response
  }

  async function answerUnrouted(context: HttpContext): Promise<Response> {
    const requestId = newRequestId(clock.now())
    const methods = allowedMethods(context.req.path)
    try {
      if (methods && context.req.method === 'OPTIONS') return preflight(methods, requestId, context)
      if (methods) return refuse(methodNotAllowed(methods), requestId, 'none', context)
      if (pages && !isApiPath(context.req.path))
        return await servePage(context, callers.of(context.env.incoming), requestId)
      return refuse(notFound(), requestId, 'none', context)
    } catch (thrown) {
      return refuse(toKeywayError(thrown, requestId, log), requestId, 'none', context)
    }
  }

  function preflight(methods: string, requestId: string, context: HttpContext): Response {
    const headers = { Allow: methods, ...cors.preflight(context.env.incoming, methods) }
    const empty: Answer = { status: 204, headers }
    return toResponse(empty, requestId, null)
  }

  async function servePage(context: HttpContext, caller: Caller, requestId: string): Promise<Response> {
    const { incoming } = context.env
    const elsewhere = loopbackRedirect(incoming, publicUrl)
    if (elsewhere) return redirect(elsewhere, requestId)
    const form = incoming.method === 'POST' ? await readForm(incoming, caller) : undefined
    const env = { ...context.env, form }
    const response = await workLimit.during(caller.network, () => pages!.fetch(context.req.raw, env))
    if (!(response instanceof Response)) throw response.allow ? methodNotAllowed(response.allow) : notFound()
    if (!response.headers.has(REQUEST_ID_HEADER)) response.headers.set(REQUEST_ID_HEADER, requestId)
    return response
  }

  /** A refusal is for the pages to show; whoever left in the middle is shown nothing. */
  async function readForm(incoming: IncomingMessage, { network }: Caller): Promise<Buffer | KeywayError> {
    try {
      return await intake.read(incoming, network, FORM_BODY)
    } catch (error) {
      if (incoming.destroyed || !(error instanceof KeywayError)) throw error
      return error
    }
  }

  function redirect(location: string, requestId: string): Response {
    return toResponse({ status: 307, headers: { Location: location } }, requestId, null)
  }
}

/** A POST of JSON, answered with JSON, whose path is one text: every call that many make at once is one. */
function isDirect({ method, path, answers }: Route): boolean {
  return method === 'POST' && !path.includes('{') && answers.every(({ type }) => type === undefined)
}

function isProbe(path: string | undefined): path is '/livez' | '/readyz' {
  return path === '/livez' || path === '/readyz'
}

const noParams = () => ({})
