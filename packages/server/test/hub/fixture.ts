import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { createHub, type HubDeps } from '../../src/hub/hub.ts'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { newId } from '../../src/ids.ts'
import type { Log } from '../../src/log.ts'
import { networkOf } from '../../src/network.ts'
import type { Storage } from '../../src/store.ts'
import type { EngineName } from '../support/engines.ts'
import { patienceMs } from '../support/patience.ts'
import { caller, openServices, type Services } from '../support/services.ts'
import { Client, type ConnectOptions } from './client.ts'

export { Client }

export interface TestHub {
  hub: ReturnType<typeof createHub>
  url: string
  port: number
  nodeId: string
}

export interface TestKey {
  id: string
  key: string
  userId: string
}

/** A log whose lines the test reads. */
export function recordedLog(): { log: Log; lines: { level: keyof Log; message: string; fields: object }[] } {
  const lines: ReturnType<typeof recordedLog>['lines'] = []
  const at = (level: keyof Log) => (fields: object, message: string) =>
    void lines.push({ level, message, fields })
  return { log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }, lines }
}

/** Opens a hub on a real HTTP server over real storage. The test advances its clock and calls its `tick`. */
export async function openHub(
  services: Services,
  t: TestContext,
  overrides: Partial<HubDeps> = {},
  storage: Storage = services.storage,
): Promise<TestHub> {
  const nodeId = overrides.nodeId ?? newId(services.clock.now())
  const hub = createHub({
    clock: services.clock,
    ports: {
      verifyToken: services.agentTokens.verify,
      keyStatus: services.apiKeys.findMany,
      meter: services.meter,
      endingsSince: (since, afterId, limit) => storage.store.endings.since(since, afterId, limit),
    },
    events: storage.events,
    presence: recordedPresence({ storage, clock: services.clock }),
    locations: storage.store.locations,
    log: services.log,
    publicUrl: services.publicUrl,
    corsOrigins: ['https://app.example.com'],
    maxConnectionsPerUser: 1000,
    version: 'test',
    tickMs: null,
    relayTimeoutMs: patienceMs(RELAY_TIMEOUT_MS),
    ...overrides,
    nodeId,
  })
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    const address = (socket as Socket).remoteAddress ?? '127.0.0.1'
    hub.handleUpgrade(request, socket, head, { address, network: networkOf(address), client: 'test' })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await hub.start()
  t.after(async () => {
    await hub.stop()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { hub, url: `ws://127.0.0.1:${port}/hub`, port, nodeId }
}

export async function open(engine: EngineName, t: TestContext, overrides: Partial<HubDeps> = {}) {
  const services = await openServices(engine, t)
  const { user } = await services.signIn('ada@example.com')
  const node = await openHub(services, t, overrides)
  /** Advances the clock, then runs one sweep and one tick of the hub. */
  const later = async (ms: number) => {
    services.clock.advance(ms)
    await node.hub.sweep()
    node.hub.tick()
  }
  return { services, userId: user.id, ...node, later, key: await makeKey(services, user.id) }
}

export async function makeKey(
  services: Services,
  userId: string,
  attributes: { scopes?: string[]; expiresAt?: number; allowedNetworks?: string[]; name?: string } = {},
): Promise<TestKey> {
  const { key, apiKey } = await services.apiKeys.create(
    userId,
    {
      name: attributes.name ?? 'robot',
      scopes: toScopes(attributes.scopes ?? []),
      expiresAt: attributes.expiresAt ?? null,
      appId: 'service-sdk',
      allowedNetworks: attributes.allowedNetworks ?? [],
    },
    caller(),
  )
  return { id: apiKey.id, key, userId }
}

export async function tokenOf(services: Services, key: TestKey, ip = '127.0.0.1'): Promise<string> {
  return (await services.agentTokens.exchange(key.key, undefined, caller(ip))).token
}

/** Connects and waits for `ready`. */
export async function connect(
  services: Services,
  url: string,
  key: TestKey,
  options: ConnectOptions = {},
): Promise<Client & { id: string }> {
  const client = new Client(url, await tokenOf(services, key), options)
  const ready = await client.next('ready')
  return Object.assign(client, { id: ready.connection_id })
}
