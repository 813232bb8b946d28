import { type ActedBy, type Audit, auditedOutcome } from '../audit/audit.ts'
import { type Clock, type Instant, SECOND, toRfc3339 } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { createReloading, type Reloading } from '../reloading.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import {
  type Ed25519SigningKey,
  newKeyPair,
  type OpenedSigningKey,
  openKeyPair,
  type PublicJwk,
  toJwk,
} from './algorithms.ts'
import type { SigningAlg, SigningKey } from './signing-key.ts'

export interface SigningKeys extends Reloading {
  /** Creates the first Ed25519 key if there is none, and decrypts the stored keys. @throws SealError */
  load(): Promise<void>
  /** Reads the stored keys again, and decrypts new ones. @throws SealError */
  reload(): Promise<void>
  /** The Ed25519 key to sign with. Synchronous and cheap, for the hot path. */
  current(): Ed25519SigningKey
  /** The key to sign with by this algorithm. Creates the first key of the algorithm if no node has created one. */
  currentOf(alg: SigningAlg): Promise<OpenedSigningKey>
  /** A published key by `kid`; null for an unknown or retired one. An unknown `kid` may cause one read of the store. */
  find(kid: string): Promise<OpenedSigningKey | null>
  /** Every published key: keys that sign, will sign soon, or may have signed tokens that are still valid. */
  jwks(): { keys: PublicJwk[] }
  /**
   * Creates a new key for each algorithm that has one. New keys are published now, and sign after
   * `PUBLISHED_BEFORE_USE`.
   */
  rotate(by: ActedBy): Promise<Rotation>
}

export interface Rotation {
  /** The id of the new Ed25519 key. */
  kid: string
  keys: { kid: string; alg: SigningAlg }[]
  signsFrom: Instant
}

/** `max-age` of the JWKS, in seconds. Its sum with `RELOAD_INTERVAL` must stay below `PUBLISHED_BEFORE_USE`. */
export const JWKS_MAX_AGE_SECONDS = 30
/** Delay before a new key signs: longer than one node's reload plus the expiry of a verifier's cached JWKS. */
export const PUBLISHED_BEFORE_USE = 60 * SECOND
/** How long an old key stays published after the last token that it can have signed expires, for clock skew. */
export const RETIREMENT_LEEWAY = 60 * SECOND
/** Minimum time between reads of the store for unknown key ids, since anyone can make up key ids. */
const UNKNOWN_KID_INTERVAL = SECOND

interface LoadedKey extends SigningKey {
  opened: OpenedSigningKey
  jwk: PublicJwk
}

/**
 * @param longestTokenSeconds the lifetime of the longest-lived token that these keys sign
 * @param reloadInterval in milliseconds; shorter with SQLite, where commands change the keys without an event
 */
export function createSigningKeys(deps: {
  storage: Storage
  audit: Audit
  clock: Clock
  secrets: Secrets
  log: Log
  longestTokenSeconds: number
  reloadInterval?: number
}): SigningKeys {
  const { storage, audit, clock, secrets, log, longestTokenSeconds, reloadInterval } = deps
  const { signingKeys } = storage.store
  /** Oldest `signsFrom` first. */
  let keys: LoadedKey[] = []
  /** Creations in progress. One per algorithm, since searching primes takes a second of CPU time. */
  const creations = new Map<SigningAlg, Promise<void>>()
  /** When the last read of the store for an unknown key id began, and its promise while it is in progress. */
  let unknownKidReadAt: Instant = Number.NEGATIVE_INFINITY
  let unknownKidRead: Promise<void> | null = null

  return {
    async load() {
      const storedKeys = await signingKeys.list(clock.now())
      if (!storedKeys.some(({ alg }) => alg === 'EdDSA'))
        await signingKeys.insertFirst(await newSigningKey('EdDSA', clock.now()))
      await reload()
    },

    reload,

    ...createReloading({
      storage,
      log,
      interval: reloadInterval,
      on: 'signing_keys.changed',
      reload,
      failure: 'signing keys could not be read',
    }),

    current() {
      const key = newestSigningKey('EdDSA')
      if (key?.alg !== 'EdDSA') throw new Error('signing keys are used before load()')
      return key
    },

    async currentOf(alg) {
      const key = newestSigningKey(alg)
      if (key) return key
      let pendingCreation = creations.get(alg)
      if (!pendingCreation) {
        pendingCreation = loadOrCreate(alg).finally(() => creations.delete(alg))
        creations.set(alg, pendingCreation)
      }
      await pendingCreation
      return newestSigningKey(alg)!
    },

    async find(kid) {
      const key = findPublished(kid)
      if (key) return key
      await readForUnknownKid()
      return findPublished(kid)
    },

    jwks() {
      return { keys: publishedKeys().map(({ jwk }) => jwk) }
    },

    async rotate(by) {
      await reload()
      const now = clock.now()
      const signsFrom = now + PUBLISHED_BEFORE_USE
      const algs = new Set<SigningAlg>(['EdDSA', ...keys.map(({ alg }) => alg)])
      const newKeys = await Promise.all([...algs].map(alg => newSigningKey(alg, now, signsFrom)))
      const othersRetireAt = signsFrom + longestTokenSeconds * SECOND + RETIREMENT_LEEWAY
      await audit.perform(
        by,
        async tx => {
          for (const key of newKeys) await tx.signingKeys.insertNext(key, othersRetireAt)
          tx.publish({ type: 'signing_keys.changed' })
          return auditedOutcome(true, {
            type: 'signing_key.rotated',
            subject: { type: 'signing_key', id: newKeys[0]!.id, user_id: null },
            before: null,
            after: { signs_from: toRfc3339(signsFrom) },
          })
        },
        async store =>
          (await store.signingKeys.list(now)).some(({ id }) => id === newKeys[0]!.id) || undefined,
      )
      await reload()
      return { kid: newKeys[0]!.id, keys: newKeys.map(({ id, alg }) => ({ kid: id, alg })), signsFrom }
    },
  }

  /**
   * The newest key of the algorithm whose `signsFrom` has passed; if there is none, the oldest one; undefined if the
   * algorithm has no key. Runs for every signature, so it creates no list.
   */
  function newestSigningKey(alg: SigningAlg): OpenedSigningKey | undefined {
    const now = clock.now()
    let oldestKey: OpenedSigningKey | undefined
    for (let index = keys.length - 1; index >= 0; index--) {
      const key = keys[index]!
      if (key.alg !== alg) continue
      if (key.signsFrom <= now) return key.opened
      oldestKey = key.opened
    }
    // A key is returned here only if another node, whose clock is slightly ahead, has just created the first one: it
    // signs before its `signsFrom`.
    return oldestKey
  }

  async function loadOrCreate(alg: SigningAlg): Promise<void> {
    await reload()
    if (!newestSigningKey(alg)) await createFirst(alg)
  }

  /** The first key signs at once. If several nodes create one, only one is stored, and all use it. */
  async function createFirst(alg: SigningAlg): Promise<void> {
    const key = await newSigningKey(alg, clock.now())
    await storage.transaction(async tx => {
      const isFirst = await tx.signingKeys.insertFirst(key)
      if (isFirst) tx.publish({ type: 'signing_keys.changed' })
      return isFirst
    })
    await reload()
  }

  async function reload(): Promise<void> {
    const storedKeys = await signingKeys.list(clock.now())
    const loadedKeys = new Map(keys.map(key => [key.id, key]))
    keys = storedKeys.map(key => ({ ...(loadedKeys.get(key.id) ?? openKey(key)), ...key }))
  }

  /** Reads the keys for an unknown id: one read at a time and at most one a second, over all unknown ids. */
  async function readForUnknownKid(): Promise<void> {
    const now = clock.now()
    if (!unknownKidRead) {
      if (now - unknownKidReadAt < UNKNOWN_KID_INTERVAL) return
      unknownKidReadAt = now
      unknownKidRead = reload().finally(() => {
        unknownKidRead = null
      })
    }
    await unknownKidRead
  }

  function findPublished(kid: string): OpenedSigningKey | null {
    return publishedKeys().find(({ id }) => id === kid)?.opened ?? null
  }

  function publishedKeys(): LoadedKey[] {
    const now = clock.now()
    return keys.filter(key => key.retiresAt === null || key.retiresAt > now)
  }

  async function newSigningKey(
    alg: SigningAlg,
    createdAt: Instant,
    signsFrom = createdAt,
  ): Promise<SigningKey> {
    const id = newId(createdAt)
    const { publicKey, privateKey } = await newKeyPair(alg)
    return {
      id,
      alg,
      publicKey,
      sealedPrivateKey: secrets.seal('signing-key', privateKey, id),
      createdAt,
      signsFrom,
      retiresAt: null,
    }
  }

  /** @throws SealError also if the public key does not belong to the private one: the row was tampered with */
  function openKey(key: SigningKey): LoadedKey {
    const openedKey = openKeyPair(key, secrets.open('signing-key', key.sealedPrivateKey, key.id))
    if (openedKey) return { ...key, opened: openedKey, jwk: toJwk(key) }
    throw new SealError(`the public half of signing key ${key.id} is not that of its sealed private half`)
  }
}
