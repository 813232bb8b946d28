import type { TestContext } from 'node:test'
import { createApps } from '../../src/apps/apps.ts'
import { KeywayError } from '../../src/errors.ts'
import type { HttpServices } from '../../src/http/services.ts'
import type { EngineName } from './engines.ts'
import { openServices, type ServiceOverrides } from './services.ts'

/**
 * What the HTTP edge is given, over one database. The hub of this server has no connections, and what apps do
 * with money and revocations is tested where it lives: here it only matters who may ask.
 */
export async function openHttpServices(engine: EngineName, t: TestContext, overrides: ServiceOverrides) {
  const services = await openServices(engine, t, overrides)
  const { storage, clock, store } = services
  const refuse = async () => {
    throw new KeywayError('charge_not_authorized', 'Nobody has authorised a charge here.')
  }
  const edge: HttpServices = {
    ...services,
    apps: createApps({ storage, clock }),
    charges: { charge: refuse },
    introspection: { introspect: async () => ({ active: false }) },
    revocations: {
      since: async cursor => (cursor === null ? { endings: [], cursor: 'start' } : null),
      subscribe: () => () => {},
    },
    securityEvents: { list: (userId, page) => store.securityEvents.list(userId, page) },
    hub: {
      connections: async () => [],
      sendTo: async () => null,
      disconnect: async () => false,
    },
    readiness: { checks: async () => [{ name: 'database', ok: true, required: true }] },
  }
  return { ...services, ...edge }
}
