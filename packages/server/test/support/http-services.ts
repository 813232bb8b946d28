import type { TestContext } from 'node:test'
import { createApps } from '../../src/apps/apps.ts'
import { createCharges } from '../../src/billing/charges.ts'
import { createRevocations } from '../../src/endings/revocation-feed.ts'
import type { HttpServices } from '../../src/http/services.ts'
import { createHub } from '../../src/hub/hub.ts'
import { newId } from '../../src/ids.ts'
import { createIntrospection } from '../../src/introspection/introspection.ts'
import { createMailHooks } from '../../src/mail/hooks/mail-hooks.ts'
import { createSuppressions } from '../../src/outbox/suppressions.ts'
import type { EngineName } from './engines.ts'
import { openServices, type ServiceOverrides } from './services.ts'

/** 24 bytes in the form in which Resend shows them. */
export const MAIL_HOOK_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

/** Everything that the HTTP edge is given, real, over one database. */
export async function openHttpServices(engine: EngineName, t: TestContext, overrides: ServiceOverrides) {
  const services = await openServices(engine, t, overrides)
  const { storage, clock, store, log, agentTokens, apiKeys, publicUrl } = services
  const hub = createHub({
    clock,
    log,
    events: storage.events,
    presence: store.presence,
    questions: {
      verifyToken: agentTokens.verify,
      standing: apiKeys.standing,
      endingsSince: store.endings.since,
    },
    publicUrl,
    corsOrigins: [],
    maxConnectionsPerUser: 10,
    nodeId: newId(clock.now()),
    version: '0.0.0',
    tickMs: null,
  })
  const apps = createApps(services)
  const edge: HttpServices = {
    ...services,
    apps,
    charges: createCharges(services),
    introspection: createIntrospection(services),
    revocations: createRevocations(services),
    securityEvents: store.securityEvents,
    hub,
    mailHooks: createMailHooks({
      ...services,
      secret: MAIL_HOOK_SECRET,
      suppressions: createSuppressions(services),
    }),
    readiness: { checks: async () => [{ name: 'database', ok: true, required: true }] },
  }

  /** Registers an app and returns its secret. */
  async function registerApp(id: string): Promise<string> {
    await apps.register({ id, name: id, audience: null, verifyUrl: null })
    return await apps.newSecret(id)
  }

  return { ...services, ...edge, registerApp }
}
