import { setTimeout as wait } from 'node:timers/promises'
import type { ServerFrame } from '@keyway/sdk/protocol'
import { SECOND } from '../clock.ts'
import { RESTARTING } from './close-codes.ts'
import type { Connections } from './connections.ts'
import type { Registry } from './registry.ts'

/** How long agents have to connect elsewhere before their connections are closed with 1012. */
export const DRAIN_AGENTS_MS = 5 * SECOND
/** The part of the drain that is reserved for closing handshakes. */
const CLOSING_MS = SECOND

/** Sends `draining` to every agent, and closes with 1012 those that are still there shortly before the deadline. */
export async function drain(
  { byId }: Registry,
  { sockets }: Pick<Connections, 'sockets'>,
  deadlineMs: number,
): Promise<void> {
  const closing = Math.min(CLOSING_MS, deadlineMs / 2)
  const seconds = Math.max(0, Math.floor((deadlineMs - closing) / SECOND))
  const frame: ServerFrame = { type: 'draining', close_in_seconds: seconds }
  for (const connection of [...byId.values()]) if (connection.state === 'open') connection.send(frame)
  await untilEmpty(byId, deadlineMs - closing)
  for (const connection of [...byId.values()]) connection.close(RESTARTING)
  await untilEmpty(sockets, closing)
}

async function untilEmpty(collection: { readonly size: number }, ms: number): Promise<void> {
  const step = 20
  for (let waited = 0; waited < ms && collection.size > 0; waited += step) await wait(step)
}
