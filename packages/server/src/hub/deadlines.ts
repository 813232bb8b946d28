import { HUB_HEARTBEAT_SECONDS, type ServerFrame } from '@keyway/sdk/protocol'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { type AgentConnection, type Ending, MAX_BUFFERED_BYTES } from './agent-connection.ts'
import type { Registry } from './registry.ts'
import type { Sweep } from './sweep.ts'

export interface DeadlinesDeps {
  clock: Clock
  registry: Registry
  sweep: Pick<Sweep, 'canSee'>
  send(connection: AgentConnection, frame: ServerFrame): void
  end(connection: AgentConnection, code: Ending['code'], reason: Ending['reason']): void
  forget(connection: AgentConnection): void
}

/** What time brings to every connection: its end, its notice, its heartbeat. */
export interface Deadlines {
  /** One pass over all connections instead of timers for each. */
  check(): void
  /** Sends `token_expiring` when it is due. */
  noticeExpiry(connection: AgentConnection, now: Instant): void
}

export function createDeadlines({ clock, registry, sweep, send, end, forget }: DeadlinesDeps): Deadlines {
  return { check, noticeExpiry }

  function check(): void {
    const now = clock.now()
    const blind = !sweep.canSee(now)
    for (const connection of registry.byId.values()) {
      const overdue = connection.overdue(now)
      if (overdue) end(connection, overdue.code, overdue.reason)
      else if (blind) end(connection, 1013, 'try_again_later')
      else if (connection.isSilent(now)) drop(connection)
      else keep(connection, now)
    }
  }

  function drop(connection: AgentConnection): void {
    forget(connection)
    connection.socket.terminate() // nobody is there to answer a close frame
  }

  function keep(connection: AgentConnection, now: Instant): void {
    if (connection.state === 'open') noticeExpiry(connection, now)
    if (now < connection.pingAt) return
    connection.pingAt = now + HUB_HEARTBEAT_SECONDS * SECOND
    if (connection.socket.bufferedAmount <= MAX_BUFFERED_BYTES) connection.socket.ping()
  }

  function noticeExpiry(connection: AgentConnection, now: Instant): void {
    if (connection.noticeExpiry(now))
      send(connection, { type: 'token_expiring', ...connection.lifetime(now) })
  }
}
