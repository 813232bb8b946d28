import timers from 'node:timers/promises'
import type { ServerFrame } from '@keyway/sdk/protocol'
import { SECOND } from '../clock.ts'
import { RESTARTING } from './close-codes.ts'
import type { Connections } from './connections.ts'
import type { Registry } from './registry.ts'

/**
 * The time for the drain: agents have all of it but CLOSING_MS to connect elsewhere, before their connections are
 * closed with 1012.
 */
export const DRAIN_AGENTS_MS = 5 * SECOND
/** The part of the drain, but at most half of it, that is reserved for closing handshakes. */
const CLOSING_MS = SECOND

/**
 * Sends `draining` to every agent and, shortly before the deadline, closes the remaining connections with 1012. Broken
 * connections are handed over to other nodes, where their agents can resume them.
 */
export async function drain(
  registry: Registry,
  { sockets, resumptions }: Pick<Connections, 'sockets' | 'resumptions'>,
  timeoutMs: number,
): Promise<void> {
  const { byId } = registry
  const closingMs = Math.min(CLOSING_MS, timeoutMs / 2)
  const closeInSeconds = Math.max(0, Math.floor((timeoutMs - closingMs) / SECOND))
  const frame: ServerFrame = { type: 'draining', close_in_seconds: closeInSeconds }
  for (const connection of [...byId.values()]) if (connection.state === 'open') connection.send(frame)
  void resumptions.handOver(timeoutMs - closingMs)
  await untilEmpty(registry, timeoutMs - closingMs)
  for (const connection of [...byId.values()]) {
    if (connection.state !== 'held') connection.closeAndHold(RESTARTING)
  }
  await Promise.all([resumptions.handOver(closingMs), untilEmpty(sockets, closingMs)])
  await resumptions.leave(closingMs)
}

async function untilEmpty(collection: { readonly size: number }, ms: number): Promise<void> {
  const stepMs = 20
  for (let waited = 0; waited < ms && collection.size > 0; waited += stepMs) await timers.setTimeout(stepMs)
}
