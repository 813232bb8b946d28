import type { TestContext } from 'node:test'
import { newId } from '../../src/ids.ts'
import { composeHttpPorts, composeHub } from '../../src/server.ts'
import type { EngineName } from './engines.ts'
import { openServices, type ServiceOverrides } from './services.ts'

/** 24 bytes in Resend's format. */
export const MAIL_HOOK_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

/** The ports of the HTTP layer over one database, composed as in the server. The test calls the hub's `tick`. */
export async function openHttpPorts(engine: EngineName, t: TestContext, overrides: ServiceOverrides) {
  const services = await openServices(engine, t, { mailHookSecret: MAIL_HOOK_SECRET, ...overrides })
  const hub = composeHub(services, newId(services.clock.now()), { tickMs: null })
  await hub.start()
  t.after(() => hub.stop())
  const ports = composeHttpPorts(services, hub)
  const { apps } = services

  /** Registers an app and returns its secret. */
  async function registerApp(id: string): Promise<string> {
    return (await apps.register({ id, name: id })).secret!
  }

  return { ...ports, registerApp }
}
