import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpBindings } from '@hono/node-server'
import type { ErrorCode } from '@keyway/sdk/protocol'
import { type Context, Hono } from 'hono'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import type { RateWindow } from '../rate-windows.ts'
import { newRequestId, REQUEST_ID_HEADER } from '../request-id.ts'
import type { SessionLifetimes } from '../sessions/session-lifetime.ts'
import { createAllowedMethods, methodNotAllowed } from './allowed-methods.ts'
import { type Answer, toResponse, writeAnswer } from './answer.ts'
import { createAuthenticate } from './authenticate.ts'
import { FORM_BODY } from './body.ts'
import { createBodyIntake, type IntakeLimits } from './body-intake.ts'
import { createCallHandler, isProbe } from './call-handler.ts'
import type { Callers } from './caller.ts'
import { createCors } from './cors.ts'
import { toKeywayError, toOAuthAnswer, toProblem } from './errors.ts'
import { createFailureLimits, type FailureLimits } from './failure-limits.ts'
import { createFairQueue, type Flow } from './fair-queue.ts'
import type { HttpPorts, MetricsSource, ObservedAnswer, PageBindings, PagesApp } from './http-ports.ts'
import { loopbackRedirect } from './loopback-redirect.ts'
import { notFound } from './not-found.ts'
import { createOpenApi } from './openapi.ts'
import { createPacing } from './paced-downloads.ts'
import { createParamsReader, routerPattern } from './path-params.ts'
import { createRequestLog } from './request-log.ts'
import type { Route } from './route.ts'
import { createRoutes, isApiPath } from './routes/routes.ts'
import { createTryOut, type TryOut } from './try-out.ts'
import { createWorkLimit } from './work-limit.ts'
import { type Challenge, challengeOf } from './www-authenticate.ts'

export interface AppOptions {
  services: HttpPorts
  clock: Clock
  log: Log
  version: string
  /** Base of all URLs in responses; the request's Host is never used. */
  publicUrl: string
  corsOrigins: readonly string[]
  callers: Callers
  /** Whether an account was used from this network lately; see known-networks.ts. */
  isKnownNetwork: (network: string) => boolean
  failureLimits: readonly RateWindow[]
  /** Failure counts shared with the pages. If absent, the app creates its own, with the windows `failureLimits`. */
  sharedFailureLimits?: FailureLimits
  /**
   * Whether mail is shown on the page `/inbox` instead of being sent, as in a trial without a mail provider. Then
   * errors also name the settings that cause them.
   */
  hasInbox: boolean
  lifetimes: SessionLifetimes
  pages?: PagesApp
  /** Called once for every request that gets a response from this app, before the response is sent; for metrics. */
  observe?: (answer: ObservedAnswer) => void
  /** Maximum number of calls in progress; above it, networks that have many of them are refused (work-limit.ts). */
  maxConcurrentCalls?: number
  intake?: IntakeLimits
  /** If absent, `GET /metrics` answers 404. */
  metrics?: MetricsSource
  metricsToken: string | null
}

type OpenApi = ReturnType<typeof createOpenApi>
type Bindings = { Bindings: HttpBindings }
type HttpContext = Context<Bindings>

/** How many characters at the end of a credential identify it: enough to distinguish it from all others. */
const FLOW_ID_LENGTH = 64

/** Methods that are metric labels. All others count as `OTHER`, since clients could invent any number of them. */
const METHOD_LABELS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The body of a request to a page; empty if it has no form. @throws KeywayError if the form was refused */
export function formOf({ form }: PageBindings): Buffer {
  if (form instanceof KeywayError) throw form
  return form ?? Buffer.alloc(0)
}

export interface HttpApp {
  fetch(request: Request, env: HttpBindings): Response | Promise<Response>
  /**
   * The fast path for POST calls with a JSON response whose URL is the path of a route without parameters, and has no
   * query: the same steps as `fetch`, without the router and its Request and Response objects. Returns false, without
   * any effect, for all other requests.
   */
  serveDirectly(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  /**
   * Calls `begin` when it is this request's turn (fair-queue.ts), unless `connection` was closed before. Calls `refuse`
   * instead if too many requests of its flow or network are queued already, or if it must make room for others.
   */
  admit(
    incoming: IncomingMessage,
    connection: Pick<EventEmitter, 'once'>,
    begin: () => void,
    refuse: () => void,
  ): void
  /** Counts a WebSocket upgrade that the hub refused as a refused request of the client's network. */
  countRefusal(incoming: IncomingMessage): void
  /** Counts a connection that closed without a response as a refused request of its network, unless it is a proxy's. */
  countUnanswered(socket: Socket): void
  /** Whether many requests from the network of this new connection were refused lately; always false for a proxy. */
  isNoisy(socket: Socket): boolean
  readonly routes: readonly Route[]
  /** The OpenAPI document, created on first use. */
  openApi(): OpenApi
  /** Runs API calls from the documentation pages, for the person who reads them. */
  readonly tryOut: TryOut
}

/** The HTTP layer: one pipeline from request to response, without middleware. */
export function createApp(options: AppOptions): HttpApp {
  const { callers, clock, log, publicUrl, pages, observe } = options
  const workLimit = createWorkLimit(options.isKnownNetwork, options.maxConcurrentCalls)
  const intake = createBodyIntake(options.intake)
  const fairQueue = createFairQueue(options.isKnownNetwork)
  const pacing = createPacing(fairQueue, incoming => flowOf(incoming, incoming.socket))
  const cors = createCors(options.corsOrigins, options.services.oauth.clientOrigins)
  const failureLimits =
    options.sharedFailureLimits ?? createFailureLimits({ clock, windows: options.failureLimits })
  const { meter } = options.services
  const authenticate = createAuthenticate({ ...options.services, clock })
  const handle = createCallHandler({ authenticate, intake, workLimit, meter })
  const requestLog = createRequestLog(log)
  const routes = createRoutes({
    ...options,
    assertMayGuess: failureLimits.assertMayGuess,
    proxyMistake: () => callers.proxyMistake,
    isLocal: incoming => callers.isLocal(incoming),
    openApi,
  })
  let openApiDocument: OpenApi | undefined
  const tryOut = createTryOut({ routes, meter, clock, refusalOf })
  const allowedMethods = createAllowedMethods(routes)

  const app = new Hono<Bindings>({ strict: true })
  for (const route of routes) {
    const readParams = createParamsReader(route.path)
    app.on(route.method, routerPattern(route.path), context => serve(route, readParams, context))
  }
  app.notFound(context => serveUnrouted(context))
  app.onError((error, context) => {
    const requestId = newRequestId(clock.now())
    return refuse(toKeywayError(error, requestId, log), requestId, 'none', context)
  })
  const directRoutes = new Map(routes.filter(isDirect).map(route => [route.path, route]))
  return {
    fetch: (request, env) => app.fetch(request, env),
    serveDirectly,
    admit,
    countRefusal,
    countUnanswered,
    isNoisy,
    routes,
    openApi,
    tryOut,
  }

  function openApi() {
    openApiDocument ??= createOpenApi(routes, options)
    return openApiDocument
  }

  function admit(
    incoming: IncomingMessage,
    connection: Pick<EventEmitter, 'once'>,
    begin: () => void,
    refuse: () => void,
  ): void {
    fairQueue.start(() => flowOf(incoming, connection), begin, refuse)
  }

  function flowOf(incoming: IncomingMessage, connection: Pick<EventEmitter, 'once'>): Flow {
    const { network } = callers.of(incoming)
    const { url, headers } = incoming
    return {
      // The end of a token is unique; its beginning is the same in all tokens. A probe has a flow of its own, so that
      // the probe does not wait behind other clients of its network, which may be all clients behind a proxy.
      id: isProbe(url) ? url : (headers.authorization?.slice(-FLOW_ID_LENGTH) ?? ''),
      network,
      onDisconnect: drop => connection.once('close', drop),
    }
  }

  function countRefusal(incoming: IncomingMessage): void {
    fairQueue.countRefusal(callers.of(incoming).network)
  }

  function countUnanswered(socket: Socket): void {
    const network = callers.peerNetwork(socket)
    if (network !== null) fairQueue.countRefusal(network)
  }

  function isNoisy(socket: Socket): boolean {
    const network = callers.peerNetwork(socket)
    return network !== null && fairQueue.isNoisy(network)
  }

  async function serve(
    route: Route,
    readParams: ReturnType<typeof createParamsReader>,
    context: HttpContext,
  ): Promise<Response> {
    const { incoming } = context.env
    const requestId = newRequestId(clock.now())
    const isPage = pages !== undefined && route.leftToPages?.(incoming)
    const readPathParams = () => readParams(name => context.req.param(name))
    const answer = await runObserved<Answer | Response>(route, incoming, requestId, caller =>
      isPage
        ? servePage(context, caller, requestId)
        : handle(route, { incoming, caller, requestId }, readPathParams),
    )
    if (answer instanceof Response) return answer
    await cors.prepare(incoming, route.cors)
    const headers = cors.headers(incoming, route.cors)
    return toResponse(pacing.ofAnswer(answer, incoming), requestId, headers)
  }

  function serveDirectly(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const route = incoming.method === 'POST' ? directRoutes.get(incoming.url ?? '') : undefined
    if (!route) return false
    const requestId = newRequestId(clock.now())
    runObserved(route, incoming, requestId, caller =>
      handle(route, { incoming, caller, requestId }, noParams),
    )
      .then(answer => {
        const write = () => writeAnswer(outgoing, answer, requestId, cors.headers(incoming, route.cors))
        // On the hot path `prepare` returns undefined: awaiting that would cost a microtask.
        return cors.prepare(incoming, route.cors)?.then(write) ?? write()
      })
      .catch(error => {
        log.error({ request_id: requestId, err: error }, 'a response could not be written')
        outgoing.destroy()
      })
    return true
  }

  /** Runs a call, converts errors to responses, and updates the metrics and the log. */
  async function runObserved<Result extends Answer | Response>(
    route: Route,
    incoming: IncomingMessage,
    requestId: string,
    run: (caller: Caller) => Promise<Result>,
  ): Promise<Result | Answer> {
    const startedAt = performance.now()
    const caller = callers.of(incoming)
    let answer: Result | Answer
    let code: ErrorCode | null = null
    try {
      answer = await run(caller)
    } catch (thrown) {
      const error = toKeywayError(thrown, requestId, log)
      const mayBeGuess = route.countsFailures || error.extras.isGuess
      const refusal = mayBeGuess ? failureLimits.refusal(caller, error) : error
      code = refusal.code
      fairQueue.countRefusal(caller.network)
      requestLog.logRefusal({ code, route: route.operation, network: caller.network, request_id: requestId })
      answer =
        route.errorFormat === 'oauth'
          ? toOAuthAnswer(refusal)
          : problemOf(refusal, requestId, challengeOf(route))
    }
    const milliseconds = performance.now() - startedAt
    const { status } = answer
    requestLog.logAnswer({
      request_id: requestId,
      route: route.operation,
      status,
      ms: Math.round(milliseconds),
    })
    observe?.({ method: route.method, route: route.path, status, milliseconds, code })
    return answer
  }

  function problemOf(error: KeywayError, requestId: string, challenge: Challenge): Answer {
    return toProblem(error, { requestId, publicUrl, challenge, namesSettings: options.hasInbox })
  }

  function refusalOf(thrown: unknown, requestId: string): Answer {
    return problemOf(toKeywayError(thrown, requestId, log), requestId, 'none')
  }

  function refuse(
    error: KeywayError,
    requestId: string,
    challenge: Challenge,
    context: HttpContext,
  ): Response {
    return toResponse(problemOf(error, requestId, challenge), requestId, cors.headers(context.env.incoming))
  }

  /** Answers requests that match no API route: a known path with another method, a page, or an unknown path. */
  async function serveUnrouted(context: HttpContext): Promise<Response> {
    const startedAt = performance.now()
    const requestId = newRequestId(clock.now())
    let code: ErrorCode | null = null
    const response = await answerUnrouted(context, requestId).catch(thrown => {
      const error = toKeywayError(thrown, requestId, log)
      code = error.code
      return refuse(error, requestId, 'none', context)
    })
    const isPage = pages !== undefined && !isApiPath(context.req.path) && response.status !== 404
    if (response.status >= 400) fairQueue.countRefusal(callers.of(context.env.incoming).network)
    observe?.({
      method: METHOD_LABELS.has(context.req.method) ? context.req.method : 'OTHER',
      route: isPage ? 'pages' : 'unknown',
      status: response.status,
      milliseconds: performance.now() - startedAt,
      code,
    })
    return response
  }

  async function answerUnrouted(context: HttpContext, requestId: string): Promise<Response> {
    const methods = allowedMethods(context.req.path)
    if (methods && context.req.method === 'OPTIONS') return preflight(methods, requestId, context)
    if (methods) throw methodNotAllowed(methods)
    if (pages && !isApiPath(context.req.path))
      return servePage(context, callers.of(context.env.incoming), requestId)
    throw notFound()
  }

  async function preflight(methods: string, requestId: string, context: HttpContext): Promise<Response> {
    const { incoming } = context.env
    const corsPolicy = routes.find(({ path }) => path === context.req.path)?.cors
    await cors.prepare(incoming, corsPolicy)
    const headers = { Allow: methods, ...cors.preflight(incoming, methods, corsPolicy) }
    return toResponse({ status: 204, headers }, requestId, null)
  }

  async function servePage(context: HttpContext, caller: Caller, requestId: string): Promise<Response> {
    const { incoming } = context.env
    const location = loopbackRedirect(incoming, publicUrl)
    if (location) return toResponse({ status: 307, headers: { Location: location } }, requestId, null)
    const form = incoming.method === 'POST' ? await readForm(incoming, caller) : undefined
    const env = { ...context.env, form, requestId }
    const response = await workLimit.run(caller.network, () => pages!.fetch(context.req.raw, env))
    if (!(response instanceof Response)) throw response.allow ? methodNotAllowed(response.allow) : notFound()
    if (!response.headers.has(REQUEST_ID_HEADER)) response.headers.set(REQUEST_ID_HEADER, requestId)
    return pacing.ofPage(response, incoming)
  }

  /** Reads the form of a page. A refusal is returned, so that the page shows it, unless the client has disconnected. */
  async function readForm(incoming: IncomingMessage, { network }: Caller): Promise<Buffer | KeywayError> {
    try {
      return await intake.read(incoming, network, FORM_BODY)
    } catch (error) {
      if (incoming.destroyed || !(error instanceof KeywayError)) throw error
      return error
    }
  }
}

/**
 * Whether `serveDirectly` handles the route: a POST with JSON body and response and no path parameters, as all frequent
 * calls are.
 */
function isDirect({ method, path, answers }: Route): boolean {
  return method === 'POST' && !path.includes('{') && answers.every(({ type }) => type === undefined)
}

const noParams = () => ({})
