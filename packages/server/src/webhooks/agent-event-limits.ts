import { createKeyedWindows } from '../keyed-windows.ts'
import type { WebhookEvent } from './webhook-event.ts'

/**
 * Limits per person and node of connections whose webhook events are announced, as multiples of the maximum number of
 * connections: more than restarting all agents causes, far fewer than would delay the events of others for long.
 */
export const ANNOUNCED_CONNECTIONS = { minute: 3, hour: 10, day: 50 } as const
/** The limits are multiples of at least this number, also where fewer connections are allowed. */
const LEAST_CONNECTIONS = 100
const MAX_PERSONS = 10_000
/** Maximum number of unannounced connections that are remembered; if one is evicted, its end is announced. */
const MAX_UNTOLD = 100_000

export interface AgentEventLimits {
  /** Drops both events of connections beyond the limit: their beginning and their end. */
  among(events: readonly WebhookEvent[]): readonly WebhookEvent[]
}

export function createAgentEventLimits(now: () => number, maxConnections: number): AgentEventLimits {
  const most = Math.max(LEAST_CONNECTIONS, maxConnections)
  const windows = (['minute', 'hour', 'day'] as const).map(window => ({
    window,
    limit: ANNOUNCED_CONNECTIONS[window] * most,
  }))
  const told = createKeyedWindows({ clock: { now }, windows, maxNames: MAX_PERSONS })
  const untold = new Set<string>()
  return { among: events => events.filter(isToldOf) }

  function isToldOf({ type, subject: { id }, data }: WebhookEvent): boolean {
    if (type === 'agent.disconnected') return !untold.has(id)
    if (type !== 'agent.connected') return true
    untold.delete(id)
    if (!told.count(String(data.user_id))) return true
    untold.add(id)
    if (untold.size > MAX_UNTOLD) untold.delete(untold.values().next().value!)
    return false
  }
}
