import { createKeyedWindows } from '../keyed-windows.ts'
import type { WebhookEvent } from './webhook-event.ts'

/**
 * How many connections of one person a node announces to webhooks in a minute, an hour and a day, as multiples of the
 * connections that one person may have: enough for restarts of all agents, too few to delay other people's events long.
 */
export const ANNOUNCED_CONNECTIONS = { minute: 3, hour: 10, day: 50 } as const
/** If one person may have fewer connections than this, the limits are multiples of this number instead. */
const MIN_CONNECTIONS = 100
/** Maximum number of persons whose announced connections are counted. */
const MAX_PERSONS = 10_000
/**
 * Maximum number of remembered connections whose `agent.connected` was left out. The `agent.disconnected` of one that
 * was evicted is sent nevertheless.
 */
const MAX_UNANNOUNCED = 100_000

export interface AgentEventLimits {
  /** Leaves out both events of each connection beyond the limits: `agent.connected` and `agent.disconnected`. */
  withinLimits(events: readonly WebhookEvent[]): readonly WebhookEvent[]
}

export function createAgentEventLimits(now: () => number, maxConnections: number): AgentEventLimits {
  const connectionsPerPerson = Math.max(MIN_CONNECTIONS, maxConnections)
  const windows = (['minute', 'hour', 'day'] as const).map(window => ({
    window,
    limit: ANNOUNCED_CONNECTIONS[window] * connectionsPerPerson,
  }))
  const announcements = createKeyedWindows({ clock: { now }, windows, maxNames: MAX_PERSONS })
  /** Ids of connections whose beginning was not announced. */
  const unannouncedIds = new Set<string>()
  return { withinLimits: events => events.filter(mayAnnounce) }

  function mayAnnounce({ type, subject: { id }, data }: WebhookEvent): boolean {
    if (type === 'agent.disconnected') return !unannouncedIds.has(id)
    if (type !== 'agent.connected') return true
    unannouncedIds.delete(id)
    if (!announcements.count(String(data.user_id))) return true
    unannouncedIds.add(id)
    if (unannouncedIds.size > MAX_UNANNOUNCED) unannouncedIds.delete(unannouncedIds.values().next().value!)
    return false
  }
}
