import { type Aggregator, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Log } from '../log.ts'

export interface ObservedAnswer {
  method: string
  /** The declared path (`/v1/api-keys/{key_id}`), never the requested one: labels must stay few. */
  route: string
  status: number
  milliseconds: number
  /** The error code of a refusal or failure; null for other responses. */
  code: string | null
}

/** Values that are read at each scrape. Failed reads are counted and logged. */
export interface MetricSources {
  mail(): Promise<{ queued: number; oldestDueSeconds: number }>
  /** `failed`: events that were given up and are not deleted yet; `disabled`: webhooks that failures disabled. */
  webhooks(): Promise<{ waiting: number; oldestWaitingSeconds: number; failed: number; disabled: number }>
  hub(): { connections: number; otherNodes: number; databaseFresh: boolean; draining: boolean }
  events(): {
    listening: boolean
    lagSeconds: number | null
    received?: number
    rejected?: ReadonlyMap<string, number>
  }
  database(): { connections: number; idle: number; waiting: number } | null
  /** The service's clock minus this machine's, in seconds. */
  clockSkewSeconds(): number
}

export interface Metrics {
  observe(answer: ObservedAnswer): void
  /** The exposition format of Prometheus. Concurrent scrapes share one rendering. */
  render(): Promise<{ type: string; body: string }>
  /** The current values, to be combined with those of other processes (combined.ts). */
  snapshot(): Promise<MetricsSnapshot>
}

/** The metrics of a process as plain objects. */
export type MetricsSnapshot = readonly {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram' | 'summary'
  /** How values of several processes are combined. */
  aggregator: Aggregator
  values: readonly { value: number; labels: Partial<Record<string, string | number>>; metricName?: string }[]
}[]

/**
 * Upper bounds in seconds. An exchange takes less than the first bound, a request for a sign-in mail about as long as
 * the third.
 */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const EXCHANGE_ROUTE = '/auth/agent-token'

/**
 * The metrics of one node. Labels are routes, methods, statuses and codes from fixed lists: their cardinality is
 * bounded, and none identifies a user, a key or a secret.
 */
export function createMetrics(sources: MetricSources, log: Log, version: string): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const durations = new Histogram({
    name: 'keyway_http_request_duration_seconds',
    help: 'Requests by method, declared route and status.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: DURATION_BUCKETS,
    registers,
  })
  const refusals = new Counter({
    name: 'keyway_http_refusals_total',
    help: 'Refused requests by problem code.',
    labelNames: ['code'] as const,
    registers,
  })
  const exchanges = new Counter({
    name: 'keyway_exchanges_total',
    help: 'Exchanges of a key for an agent token, by outcome: issued, or the code of the refusal.',
    labelNames: ['outcome'] as const,
    registers,
  })
  exchanges.inc({ outcome: 'issued' }, 0)
  const sourceFailures = new Counter({
    name: 'keyway_metric_source_failures_total',
    help: 'Failed reads of the gauges, by source.',
    labelNames: ['source'] as const,
    registers,
  })
  gauge('keyway_info', 'Always 1; the label is the version.', 'first', ['version']).set({ version }, 1)
  const sourceGauges = createSourceGauges()
  let rendering: ReturnType<Metrics['render']> | null = null

  return {
    observe({ method, route, status, milliseconds, code }) {
      durations.observe({ method, route, status }, milliseconds / 1000)
      if (route === EXCHANGE_ROUTE) exchanges.inc({ outcome: code ?? 'issued' })
      if (code !== null) refusals.inc({ code })
    },
    render() {
      rendering ??= renderOnce().finally(() => {
        rendering = null
      })
      return rendering
    },
    async snapshot() {
      await sourceGauges.refresh()
      // prom-client declares a metric's `type` as a number, but returns its name.
      return (await registry.getMetricsAsJSON()) as unknown as MetricsSnapshot
    },
  }

  async function renderOnce() {
    await sourceGauges.refresh()
    return { type: registry.contentType, body: await registry.metrics() }
  }

  function gauge<Label extends string>(
    name: string,
    help: string,
    aggregator: Aggregator,
    labelNames: Label[] = [],
  ): Gauge<Label> {
    return new Gauge({ name, help, labelNames, aggregator, registers })
  }

  function createSourceGauges() {
    const queuedMails = gauge('keyway_mail_queued', 'Mails in the queue.', 'max')
    const oldestDueMailAge = gauge(
      'keyway_mail_oldest_due_seconds',
      'How long the oldest due mail has waited.',
      'max',
    )
    const waitingWebhookEvents = gauge('keyway_webhook_waiting', 'Events that wait for webhooks.', 'max')
    const oldestWebhookEventAge = gauge(
      'keyway_webhook_oldest_waiting_seconds',
      'How long the oldest waiting event of a webhook has waited.',
      'max',
    )
    const failedWebhookEvents = gauge(
      'keyway_webhook_failed',
      'Events of webhooks that were given up in the last seven days.',
      'max',
    )
    const disabledWebhooks = gauge(
      'keyway_webhooks_disabled',
      'Webhooks that were disabled after failures.',
      'max',
    )
    const connections = gauge('keyway_hub_connections', 'Live agent connections of this node.', 'sum')
    const otherNodes = gauge('keyway_hub_other_nodes', 'Other live nodes.', 'max')
    const databaseFresh = gauge(
      'keyway_hub_database_fresh',
      '0: this node cannot confirm key status, and has closed its agent connections.',
      'min',
    )
    const deprecatedDatabaseFresh = gauge(
      'keyway_hub_sees_database',
      'Deprecated: keyway_hub_database_fresh.',
      'min',
    )
    const draining = gauge('keyway_hub_draining', '1 while this node is stopping.', 'max')
    const listening = gauge(
      'keyway_events_listening',
      '0: this node exchanges no events with other nodes.',
      'min',
    )
    const eventsLag = gauge('keyway_events_lag_seconds', 'Round-trip time of the last test event.', 'max')
    const receivedEvents = new Counter({
      name: 'keyway_events_received_total',
      help: 'Notifications received from the carrier of events, its own included.',
      registers,
    })
    const rejectedEvents = new Counter({
      name: 'keyway_events_rejected_total',
      help: 'Received events that failed authentication or validation, by reason. They have no effect.',
      labelNames: ['reason'] as const,
      registers,
    })
    const databaseConnections = gauge(
      'keyway_database_connections',
      'Connections to the database, by state.',
      'sum',
      ['state'],
    )
    const waitingCalls = gauge(
      'keyway_database_waiting',
      'Calls that wait for a connection or the write lock.',
      'sum',
    )
    const clockSkew = gauge(
      'keyway_clock_skew_seconds',
      "The service's clock minus this machine's.",
      'average',
    )

    const readers: Record<keyof MetricSources, () => void | Promise<void>> = {
      async mail() {
        const backlog = await sources.mail()
        queuedMails.set(backlog.queued)
        oldestDueMailAge.set(backlog.oldestDueSeconds)
      },
      async webhooks() {
        const backlog = await sources.webhooks()
        waitingWebhookEvents.set(backlog.waiting)
        oldestWebhookEventAge.set(backlog.oldestWaitingSeconds)
        failedWebhookEvents.set(backlog.failed)
        disabledWebhooks.set(backlog.disabled)
      },
      hub() {
        const hub = sources.hub()
        connections.set(hub.connections)
        otherNodes.set(hub.otherNodes)
        databaseFresh.set(hub.databaseFresh ? 1 : 0)
        deprecatedDatabaseFresh.set(hub.databaseFresh ? 1 : 0)
        draining.set(hub.draining ? 1 : 0)
      },
      events() {
        const health = sources.events()
        listening.set(health.listening ? 1 : 0)
        if (health.lagSeconds !== null) eventsLag.set(health.lagSeconds)
        receivedEvents.reset()
        receivedEvents.inc(health.received ?? 0)
        rejectedEvents.reset()
        for (const [reason, count] of health.rejected ?? []) rejectedEvents.inc({ reason }, count)
      },
      database() {
        const load = sources.database()
        if (!load) return
        databaseConnections.set({ state: 'busy' }, load.connections - load.idle)
        databaseConnections.set({ state: 'idle' }, load.idle)
        waitingCalls.set(load.waiting)
      },
      clockSkewSeconds: () => clockSkew.set(sources.clockSkewSeconds()),
    }
    return {
      async refresh() {
        for (const [source, read] of Object.entries(readers)) {
          try {
            await read()
          } catch (error) {
            sourceFailures.inc({ source })
            log.debug({ source, error: String(error) }, 'a metric could not be read')
          }
        }
        // While this node receives no events, the round-trip time of the last test event is stale: export none.
        if (!sources.events().listening) eventsLag.reset()
      },
    }
  }
}
