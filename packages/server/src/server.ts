import { availableParallelism } from 'node:os'
import type { HttpBindings } from '@hono/node-server'
import { createAdministration } from './administration/administration.ts'
import { createCharges } from './billing/charges.ts'
import type { Config } from './config.ts'
import { createRevocations } from './endings/revocation-feed.ts'
import { createApp, formOf, type HttpApp } from './http/app.ts'
import { type Callers, createCallers } from './http/caller.ts'
import { createFailureLimits } from './http/failure-limits.ts'
import type { HttpPorts, PageBindings } from './http/http-ports.ts'
import { createHttpServer, type HttpServer } from './http/http-server.ts'
import { holdFreePort, listen } from './http/listen.ts'
import { createPersonExports } from './http/person-export.ts'
import { DRAIN_AGENTS_MS } from './hub/drain.ts'
import { createHub, type Hub, type HubDeps } from './hub/hub.ts'
import { NODE_TIMEOUT_MS } from './hub/presence-store.ts'
import { recordedPresence } from './hub/recorded-presence.ts'
import { newId } from './ids.ts'
import { createIntrospection } from './introspection/introspection.ts'
import { createLog, type Log } from './log.ts'
import { createMailHooks } from './mail/hooks/mail-hooks.ts'
import { createInbox } from './mail/inbox.ts'
import { createMetrics, type MetricSources, type Metrics } from './metrics/metrics.ts'
import { listenForMetrics } from './metrics/metrics-server.ts'
import { createOAuth } from './oauth/oauth.ts'
import { createExamination } from './operations/examination.ts'
import { checkHealth } from './operations/health.ts'
import { createLogoutDelivery } from './operations/logout-delivery.ts'
import { createTimers } from './operations/timers.ts'
import { createWebhookDelivery, webhookBacklog } from './operations/webhook-delivery.ts'
import { DRAIN_MAIL_MS } from './outbox/dispatcher.ts'
import { createMail, openServices, type Services } from './services.ts'
import { holdDataDir } from './storage/data-dir-lock.ts'
import { VERSION } from './version.ts'
import type { PageApi } from './web/kit.ts'
import type { Pages } from './web/pages.ts'

export { VERSION }

/** Maximum number of dead nodes whose presence rows are removed at the start. */
const MAX_DEAD_NODES = 1000
/** At the start, administrators are counted up to this number, for the log. */
const MAX_COUNTED_ADMINISTRATORS = 1000
const NEVER_SETTLES = new Promise<never>(() => {})

export interface RunningServer extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly services: Services
  readonly hub: Hub
  /** Resolves with an error after which the process must be restarted. */
  readonly failure: Promise<Error>
  /** Drains: accepts no new requests, sends `draining` to agents, leaves queued mail queued. */
  close(): Promise<void>
}

export interface ServerOptions {
  log?: Log
  /** Prints the link of each mail that has one, if mails go to the local inbox; to standard output by default. */
  announce?: (line: string) => void
  /** Timing of the hub; the hub's own defaults if omitted. */
  hub?: HubTimes
  /**
   * Shares the metrics of this process with the other processes of the node. Returns the function that renders the
   * metrics of all processes.
   */
  shareMetrics?: (own: Metrics) => Metrics['render']
}

/** With `tickMs` null the hub has no timer, and the caller runs its periodic work. */
export type HubTimes = Pick<HubDeps, 'tickMs' | 'relayTimeoutMs'>

/**
 * Starts the whole service; resolves when it listens.
 *
 * @throws Error with one sentence for the operator: a taken port, a data directory in use, a database that is
 *   newer than this program, stored keys that no secret opens
 */
export async function startServer(settings: Config, options: ServerOptions = {}): Promise<RunningServer> {
  await using stack = new AsyncDisposableStack()
  const heldPort = settings.port === 0 ? await holdFreePort(settings) : null
  stack.defer(() => void heldPort?.holder.close())
  const config = heldPort?.config ?? settings
  const log = options.log ?? createLog(config.logLevel)

  if (config.database.engine === 'sqlite') stack.use(holdDataDir(config.dataDir))
  const services = await openServices(config, log)
  stack.defer(() => services.close())
  // The process that holds the data directory is the only node, so every presence row is of a dead node, even one with
  // a heartbeat in the future (the system's clock was set back).
  if (config.database.engine === 'sqlite')
    await services.storage.transaction(tx =>
      tx.presence.prune(Number.MAX_SAFE_INTEGER, MAX_DEAD_NODES, services.clock.now()),
    )
  await services.listed.apply()
  if (config.adminEmails.length > 0)
    log.info(
      {
        listed: config.adminEmails.length,
        administrators: await services.storage.store.users.countAdministrators(MAX_COUNTED_ADMINISTRATORS),
      },
      'KEYWAY_ADMIN_EMAILS is applied; listed addresses become administrators when they sign in',
    )
  const nodeId = newId(services.clock.now())
  const hub = composeHub(services, nodeId, options.hub)
  stack.defer(() => hub.stop())
  await hub.start()
  const { dispatcher } = await createMail(services, options.announce ?? (line => console.log(line)), nodeId)
  const ownMetrics = createMetrics(metricSources(services, hub), log, VERSION)
  const metrics = options.shareMetrics
    ? { ...ownMetrics, render: options.shareMetrics(ownMetrics) }
    : ownMetrics
  const shutdown = new AbortController()
  const httpServer = composeHttpServer(services, hub, metrics, shutdown.signal)
  if (config.metricsPort !== null) {
    const metricsServer = await listenForMetrics(metrics, { ...config, port: config.metricsPort })
    stack.defer(() => {
      metricsServer.close()
      metricsServer.closeAllConnections()
    })
  }
  await listen(httpServer, config, heldPort?.holder)
  stack.defer(() => {
    httpServer.close()
    httpServer.closeAllConnections()
  })
  // With PostgreSQL more cores are used anyway: by the database, and by several processes of the service.
  if (config.database.engine === 'sqlite' && availableParallelism() > 1) services.signer.allowThread()
  await services.storage.store.outbox.releaseAbandoned(services.clock.now() - NODE_TIMEOUT_MS)
  dispatcher.start()
  const timers = createTimers({ ...services, clockReference: services.storage.engine.clockReference })
  timers.start()
  services.signingKeys.start()
  services.policies.start()
  services.imported.start()
  const logoutDelivery = createLogoutDelivery(services)
  logoutDelivery.start()
  const webhookDelivery = createWebhookDelivery(services, nodeId)
  webhookDelivery.start()

  const resources = stack.move()
  let closePromise: Promise<void> | undefined
  const close = () => {
    closePromise ??= shutDown()
    return closePromise
  }
  return {
    url: config.publicUrl,
    port: config.port,
    services,
    hub,
    failure: services.storage.engine.failure ?? NEVER_SETTLES,
    close,
    [Symbol.asyncDispose]: close,
  }

  async function shutDown(): Promise<void> {
    timers.stop()
    services.signingKeys.stop()
    services.policies.stop()
    services.imported.stop()
    shutdown.abort()
    await Promise.all([
      httpServer.drain(),
      hub.drain(DRAIN_AGENTS_MS),
      dispatcher.stop(DRAIN_MAIL_MS),
      logoutDelivery.stop(),
      webhookDelivery.stop(),
    ])
    await services.apiKeys
      .flushUses()
      .catch(error => log.warn({ error: String(error) }, 'last uses were not stored'))
    await services.meter.flush().catch(error => log.warn({ error: String(error) }, 'usage was not stored'))
    await services.statistics
      .flush()
      .catch(error => log.warn({ error: String(error) }, 'statistics were not stored'))
    await services.auditKeeping
      .seal()
      .catch(error => log.warn({ error: String(error) }, 'the head of the audit was not authenticated'))
    await services.limiter
      .release()
      .catch(error => log.warn({ error: String(error) }, 'shares of limits were not released'))
    await resources.disposeAsync()
  }
}

/** Creates the hub of this node without starting it. */
export function composeHub(services: Services, nodeId: string, times?: HubTimes): Hub {
  const { config, storage, clock, log, agentTokens, apiKeys, meter } = services
  return createHub({
    clock,
    log,
    events: storage.events,
    presence: recordedPresence(services),
    locations: storage.store.locations,
    ports: {
      verifyToken: agentTokens.verify,
      keyStatus: apiKeys.findMany,
      endingsSince: storage.store.endings.since,
      meter,
    },
    publicUrl: config.publicUrl,
    corsOrigins: config.corsOrigins,
    maxConnectionsPerUser: config.hubMaxConnections,
    deliveriesPerUser: config.hubDeliveries,
    deliveryMibPerUser: config.hubDeliveryMib,
    nodeId,
    version: VERSION,
    ...times,
  })
}

export function composeHttpPorts<Base extends Services>(services: Base, hub: Hub) {
  const { config, storage } = services
  const introspection = createIntrospection({ ...services, publicUrl: config.publicUrl })
  return {
    ...services,
    charges: createCharges({ ...services, onSpend: services.apiKeys.alerts.onSpend }),
    hub,
    store: storage.store,
    administration: createAdministration({ ...services, disconnect: hub.disconnect }),
    introspection,
    oauth: createOAuth({
      ...services,
      introspection,
      publicUrl: config.publicUrl,
      exchangeLimits: config.exchangeLimits,
      privateNetworks: config.webhookPrivateNetworks,
      clientRegistry: services.clients,
    }),
    readiness: { checks: () => checkHealth(services, hub) },
    personExports: createPersonExports({ ...services, store: storage.store }, services.clock),
    revocations: createRevocations(services),
    mailHooks: config.mailHookSecret
      ? createMailHooks({ ...services, secret: config.mailHookSecret })
      : undefined,
    securityEvents: storage.store.securityEvents,
  } satisfies HttpPorts
}

function composeHttpServer(
  services: Services,
  hub: Hub,
  metrics: Metrics,
  stopping: AbortSignal,
): HttpServer {
  const { config, storage, clock, log } = services
  const callers = createCallers({ trustedProxies: config.trustedProxies, host: config.host, log })
  const inbox = config.mail.kind === 'inbox' ? createInbox(services) : null
  const securityEvents = storage.store.securityEvents
  const failureLimits = createFailureLimits({ clock, windows: config.failureLimits })
  const ports = composeHttpPorts(services, hub)
  const pages = loadOnFirstUse(async () => {
    const { createPages } = await import('./web/pages.ts')
    return createPages({
      ...services,
      api: pageApi(() => app, callers),
      exportOf: ports.personExports.exportOf,
      agents: hub,
      administration: createAdministration({ ...services, disconnect: hub.disconnect }),
      examination: createExamination(services, hub),
      store: services.storage.store,
      failures: failureLimits,
      inbox,
      lifetimes: config,
      maxActiveKeys: config.maxActiveKeys,
      productName: config.mailFrom.name,
      brand: config.brand,
      publicUrl: config.publicUrl,
      securityEvents,
      stopping,
      supportEmail: config.supportEmail,
      callerOf: (_request, env) => callers.of((env as HttpBindings).incoming),
      formOf: (_request, env) => formOf(env as PageBindings),
      requestIdOf: env => (env as PageBindings).requestId,
      isLocal: (_request, env) => callers.isLocal((env as HttpBindings).incoming),
    })
  })
  const app: HttpApp = createApp({
    services: ports,
    clock,
    log,
    version: VERSION,
    publicUrl: config.publicUrl,
    corsOrigins: config.corsOrigins,
    callers,
    isKnownNetwork: services.knownNetworks.isKnown,
    failureLimits: config.failureLimits,
    sharedFailureLimits: failureLimits,
    lifetimes: config,
    hasInbox: inbox !== null,
    observe(answer) {
      metrics.observe(answer)
      services.statistics.countResponse(answer)
    },
    metrics: config.metricsPort === null ? metrics : undefined,
    metricsToken: config.metricsToken,
    pages,
  })
  return createHttpServer(app, {
    publicUrl: config.publicUrl,
    clock,
    log,
    upgrade: (request, socket, head) => hub.handleUpgrade(request, socket, head, callers.of(request)),
  })
}

/** What the documentation pages need of the API: its OpenAPI document, and calls on behalf of the reader. */
function pageApi(app: () => HttpApp, callers: Callers): PageApi {
  return {
    document: () => app().openApi(),
    mayTry: operation => app().tryOut.mayTry(operation),
    call(typed, signedIn, env) {
      const { incoming, requestId } = env as PageBindings
      return app().tryOut.call(typed, signedIn, { caller: callers.of(incoming), requestId, incoming })
    },
  }
}

/** Loads the pages on the first request for a page, so that the start does not wait for them. */
function loadOnFirstUse(load: () => Promise<Pages>): Pick<Pages, 'fetch'> {
  let pagesPromise: Promise<Pages> | undefined
  return {
    async fetch(request, env) {
      pagesPromise ??= load()
      try {
        return (await pagesPromise).fetch(request, env)
      } catch (error) {
        pagesPromise = undefined
        throw error
      }
    },
  }
}

function metricSources({ storage, clock }: Services, hub: Hub): MetricSources {
  return {
    async mail() {
      const now = clock.now()
      const { queued, oldestDueAt } = await storage.store.outbox.depth(now)
      return { queued, oldestDueSeconds: oldestDueAt === null ? 0 : (now - oldestDueAt) / 1000 }
    },
    webhooks: () => webhookBacklog({ storage, clock }),
    hub: () => hub.health(),
    events() {
      const { lagMs, ...health } = storage.eventsHealth()
      return { ...health, lagSeconds: lagMs === undefined ? null : lagMs / 1000 }
    },
    database: () => storage.engine.load?.() ?? null,
    clockSkewSeconds: () => clock.skew / 1000,
  }
}
