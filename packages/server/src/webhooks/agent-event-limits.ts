import { createKeyedWindows } from '../keyed-windows.ts'
import type { WebhookEvent } from './webhook-event.ts'

/**
 * Maximum number of one person's connections for which a node announces webhook events, as multiples of those that a
 * person may have there at once: more than agents cause that all restart, far fewer than would delay the events of
 * others for long.
 */
export const ANNOUNCED_CONNECTIONS = { minute: 3, hour: 10, day: 50 } as const
/** The multiples are of at least this number. */
const LEAST_CONNECTIONS = 100
const MAX_PERSONS = 10_000
/** Maximum number of unannounced connections in memory; of those that were evicted, the end is announced. */
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
    if (!told.take(String(data.user_id))) return true
    untold.add(id)
    if (untold.size > MAX_UNTOLD) untold.delete(untold.values().next().value!)
    return false
  }
}
