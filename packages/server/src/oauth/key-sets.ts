import { createPublicKey, type KeyObject } from 'node:crypto'
import type { MayRead } from '../clients/read-limits.ts'
import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { UrlProvider } from '../outgoing/lookups.ts'
import type { Outgoing } from '../outgoing/outgoing.ts'

/** How long a fetched key set is used. */
const CACHE_TIME = 5 * MINUTE
/** Minimum interval between two fetches of a set, however many unknown key ids are presented. */
const MIN_FETCH_INTERVAL = 30 * SECOND
const MAX_KEYS = 20
const MAX_SETS = 1000

/** A public key of a client, for the algorithms that its type allows. */
export interface ClientKey {
  kid: string | undefined
  alg: string | undefined
  publicKey: KeyObject
}

interface KeySet {
  fetchedAt: Instant
  keys: Promise<ClientKey[]>
}

export interface KeySets {
  /**
   * The keys of the JWK set (RFC 7517) at this URL, cached for CACHE_TIME, and fetched again after MIN_FETCH_INTERVAL
   * if no key has the id `kid`. Empty if the set cannot be fetched. If too much was fetched lately for self-described
   * clients (read-limits.ts), the set of such a client is not fetched: its cached keys are returned, if any.
   *
   * @param by who chose the URL (the client itself, or the operator), and the network of the caller
   */
  keysOf(
    url: string,
    kid: string | undefined,
    by: { urlProvider: UrlProvider; network: string },
  ): Promise<ClientKey[]>
}

export function createKeySets({
  call,
  clock,
  mayRead,
}: {
  call: Outgoing
  clock: Clock
  /** Limits the fetches for self-described clients. */
  mayRead: MayRead
}): KeySets {
  /** Cached sets, by URL. Those of the operator's clients are separate, so that strangers cannot evict them. */
  const setsOf: Record<UrlProvider, Map<string, KeySet>> = { operator: new Map(), client: new Map() }

  return {
    async keysOf(url, kid, { urlProvider, network }) {
      const now = clock.now()
      const cachedSet = setsOf[urlProvider].get(url)
      const keys = cachedSet && now < cachedSet.fetchedAt + CACHE_TIME ? await cachedSet.keys : null
      const hasKey = kid === undefined || keys?.some(key => key.kid === kid)
      if (keys && (hasKey || now < cachedSet!.fetchedAt + MIN_FETCH_INTERVAL)) return keys
      if (urlProvider === 'client' && !mayRead(network)) return keys ?? []
      return fetchAndCache(url, urlProvider, now)
    },
  }

  function fetchAndCache(url: string, urlProvider: UrlProvider, now: Instant): Promise<ClientKey[]> {
    const sets = setsOf[urlProvider]
    const keys = fetchKeys(url, urlProvider).catch(() => [])
    sets.delete(url)
    sets.set(url, { fetchedAt: now, keys })
    if (sets.size > MAX_SETS) sets.delete(sets.keys().next().value!)
    return keys
  }

  async function fetchKeys(url: string, urlProvider: UrlProvider): Promise<ClientKey[]> {
    const { status, text } = await call(url, { headers: { accept: 'application/json' }, urlProvider })
    const body = status === 200 ? (JSON.parse(text) as { keys?: unknown }) : {}
    return Array.isArray(body.keys) ? body.keys.slice(0, MAX_KEYS).flatMap(toKeys) : []
  }
}

/** Returns the key in a list, which is empty if the key cannot verify signatures. */
function toKeys(jwk: Record<string, unknown>): ClientKey[] {
  try {
    if (jwk.use !== undefined && jwk.use !== 'sig') return []
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
    return [{ kid: textOf(jwk.kid), alg: textOf(jwk.alg), publicKey }]
  } catch {
    return []
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
