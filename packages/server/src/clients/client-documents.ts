import type { App } from '../apps/app.ts'
import { type Clock, HOUR, type Instant, MINUTE } from '../clock.ts'
import type { KnownNetworks } from '../known-networks.ts'
import { createOutgoing } from '../outgoing/outgoing.ts'
import type { Storage } from '../store.ts'
import { readClientMetadata } from './client-metadata.ts'
import { createReadLimits } from './read-limits.ts'

/** How long a document is cached; if it cannot be fetched, the client's stored metadata are cached as long instead. */
const DOCUMENT_TTL = HOUR
/** How long it is cached that a client has neither a document nor stored metadata. */
const ABSENCE_TTL = MINUTE
const MAX_DOCUMENTS = 1000

interface CachedDocument {
  until: Instant
  app: Promise<App | null>
}

/**
 * The client that the metadata document at the URL `clientId` describes. If the document cannot be fetched, or too many
 * were fetched for the caller's network, the client as described at the last consent; null without one.
 */
export type FindDocument = (clientId: string, network: string) => Promise<App | null>

/** Finds clients whose id is the URL of a document with their metadata (OAuth Client ID Metadata Document). */
export function createClientDocuments({
  storage,
  clock,
  knownNetworks,
  privateNetworks,
}: {
  storage: Storage
  clock: Clock
  knownNetworks: Pick<KnownNetworks, 'isKnown'>
  privateNetworks: readonly string[]
}): FindDocument {
  const call = createOutgoing(privateNetworks)
  const mayRead = createReadLimits({ clock, knownNetworks })
  /** By client id, which is the URL of the document. */
  const cache = new Map<string, CachedDocument>()

  return async (clientId, network) => {
    const now = clock.now()
    const cachedDocument = cache.get(clientId)
    if (cachedDocument && now < cachedDocument.until) return cachedDocument.app
    // Not cached: a limit of this network (read-limits.ts) is reached, but another network may still read the document.
    if (!mayRead(network)) return storage.store.apps.find(clientId)
    const entry: CachedDocument = { until: now + DOCUMENT_TTL, app: findApp(clientId) }
    cache.delete(clientId)
    cache.set(clientId, entry)
    if (cache.size > MAX_DOCUMENTS) cache.delete(cache.keys().next().value!)
    try {
      const app = await entry.app
      if (!app) entry.until = clock.now() + ABSENCE_TTL
      return app
    } catch (error) {
      // The database did not answer: the next request tries again.
      entry.until = 0
      throw error
    }
  }

  async function findApp(clientId: string): Promise<App | null> {
    const storedApp = await storage.store.apps.find(clientId)
    const settings = await readDocument(clientId).catch(() => null)
    if (!settings) return storedApp
    const createdAt = storedApp?.createdAt ?? clock.now()
    return { ...settings, id: clientId, firstParty: false, createdAt, coversFrom: createdAt }
  }

  async function readDocument(clientId: string) {
    const { status, text } = await call(clientId, {
      headers: { accept: 'application/json' },
      urlProvider: 'client',
    })
    const document = status === 200 ? (JSON.parse(text) as Record<string, unknown>) : null
    // The document must have its own URL as `client_id`: a copy at another URL describes no client.
    if (document?.client_id !== clientId) return null
    const metadata = readClientMetadata(document, ['none', 'private_key_jwt'])
    return 'error' in metadata ? null : metadata.settings
  }
}
