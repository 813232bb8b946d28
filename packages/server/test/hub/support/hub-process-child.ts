import type { TestContext } from 'node:test'
import { openServices } from '../../support/services.ts'
import { makeKey, openHub, type TestKey, tokenOf } from '../fixture.ts'

export interface Measurement {
  connections: number
  /** Open handles and timers of the process, including sockets. */
  resources: number
  heapBytes: number
  residentBytes: number
  /** Duration of one call of `hub.tick()`, which checks all connections. */
  tickMs: number
}

export type Commands = typeof commands

const cleanups: (() => unknown)[] = []
const context = { after: (end: () => unknown) => cleanups.unshift(end) } as unknown as TestContext
const services = await openServices('sqlite', context)
const { hub, port } = await openHub(services, context, { tickMs: undefined, maxConnectionsPerUser: 10_000 })
const keys: TestKey[] = []
/** How far `advance` moves the clock between two sweeps: not so far that the hub takes its database for unreachable. */
const STEP_MS = 5_000
let lastRunAt = performance.now()
setInterval(followRealTime, 20).unref()

const commands = {
  async tokens(count: number, users: number): Promise<string[]> {
    while (keys.length < users) {
      const { user } = await services.signIn(`person-${keys.length}@example.com`)
      keys.push(await makeKey(services, user.id))
    }
    const tokens: string[] = []
    while (tokens.length < count) tokens.push(await tokenOf(services, keys[tokens.length % users]!))
    return tokens
  },
  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      services.clock.advance(Math.min(left, STEP_MS))
      await hub.sweep()
    }
  },
  measure(): Measurement {
    globalThis.gc?.()
    globalThis.gc?.() // The second call collects what the first one only marked.
    const { heapUsed, external, rss } = process.memoryUsage()
    const startedAt = performance.now()
    hub.tick()
    const tickMs = performance.now() - startedAt
    return {
      connections: hub.connectionCount,
      resources: process.getActiveResourcesInfo().length,
      heapBytes: heapUsed + external,
      residentBytes: rss,
      tickMs,
    }
  },
}

function followRealTime(): void {
  const now = performance.now()
  services.clock.advance(Math.floor(now) - Math.floor(lastRunAt))
  lastRunAt = now
}

process.on('message', async ({ id, name, input }: { id: number; name: keyof Commands; input: never[] }) => {
  const command = commands[name] as (...input: never[]) => unknown
  process.send!({ id, answer: await command(...input) })
})
process.on('disconnect', async () => {
  for (const end of cleanups) await end()
  process.exit()
})
process.send!({ port })
