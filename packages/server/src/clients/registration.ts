import { type App, REGISTERED_PREFIX } from '../apps/app.ts'
import { APP_SECRET_PREFIX } from '../apps/app-secret.ts'
import { type Clock, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import { createKeyedWindows } from '../keyed-windows.ts'
import type { Caller } from '../network.ts'
import { randomToken, sha256 } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { type AuthMethod, readClientMetadata } from './client-metadata.ts'

/** How many clients one network may register on one node. */
const NETWORK_LIMITS = [
  { window: 'hour', limit: 20 },
  { window: 'day', limit: 100 },
] as const
/**
 * How many clients all networks together may register on one node: bounds what strangers with many networks can store.
 */
const TOTAL_LIMITS = [
  { window: 'hour', limit: 500 },
  { window: 'day', limit: 2000 },
] as const
const MAX_NETWORKS = 50_000
const SECRET_BYTES = 32
const AUTH_METHODS: AuthMethod[] = ['client_secret_basic', 'client_secret_post', 'none', 'private_key_jwt']

export interface RegisteredClient {
  app: App
  authMethod: AuthMethod
  secret: string | null
  /** Seconds since 1970. */
  issuedAt: number
}

export type RegisterClient = (
  metadata: unknown,
  caller: Caller,
) => Promise<RegisteredClient | { error: string; description: string }>

/**
 * Dynamic client registration (RFC 7591), for operators that allow it. It needs no authentication. A client to which no
 * person consents is removed after some days.
 */
export function createRegistration({ storage, clock }: { storage: Storage; clock: Clock }): RegisterClient {
  const registrationsByNetwork = createKeyedWindows({
    clock,
    windows: NETWORK_LIMITS,
    maxNames: MAX_NETWORKS,
  })
  const allRegistrations = createKeyedWindows({ clock, windows: TOTAL_LIMITS, maxNames: 10 })

  return async (metadata, caller) => {
    const result = readClientMetadata(metadata, AUTH_METHODS)
    if ('error' in result) return result
    const wait = registrationsByNetwork.count(caller.network) ?? allRegistrations.count('all')
    if (wait) {
      const detail = `Too many clients were registered. Try again in ${wait.retryAfter} seconds.`
      throw new KeywayError('rate_limited', detail, { ...wait })
    }
    const now = clock.now()
    const id = REGISTERED_PREFIX + newId(now).replaceAll('-', '')
    const app: App = { ...result.settings, id, firstParty: false, createdAt: now, coversFrom: now }
    const hasSecret = result.authMethod.startsWith('client_secret')
    const secret = hasSecret ? APP_SECRET_PREFIX + randomToken(SECRET_BYTES) : null
    await storage.transaction(
      async tx => {
        await tx.apps.insert(app)
        await tx.registeredClients.insert(id, now)
        if (secret !== null) await tx.apps.addSecret(id, sha256(secret), now)
        return true
      },
      async store => (await store.apps.find(id)) !== null || undefined,
    )
    return { app, authMethod: result.authMethod, secret, issuedAt: Math.floor(now / SECOND) }
  }
}
