import { randomBytes } from 'node:crypto'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { keyPairOf, SEED_BYTES, type SecretKey } from './ed25519.ts'
import type { SigningKey } from './signing-key.ts'

export interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

/** A decrypted signing key; in memory only. */
export interface OpenedSigningKey {
  kid: string
  /** libsodium's 64-byte secret key. */
  secretKey: SecretKey
}

export interface SigningKeys {
  /** Creates the first key where there is none, and decrypts the stored ones. @throws SealError */
  load(): Promise<void>
  /** Reads the stored keys again. */
  reload(): Promise<void>
  /** Reloads on `signing_keys.changed` and on a timer, in case an event is lost. */
  start(): void
  stop(): void
  /** The key to sign with. Synchronous and cheap, for the hot path. */
  current(): OpenedSigningKey
  /**
   * A published key by `kid`; null for an unknown or retired one. An unknown `kid` may cause one read of the store.
   */
  find(kid: string): Promise<OpenedSigningKey | null>
  /** Every published key: signing, next and not yet retired. */
  jwks(): { keys: PublicJwk[] }
  /** Creates a key that is published now and signs from `PUBLISHED_BEFORE_USE` on. */
  rotate(): Promise<{ kid: string; signsFrom: number }>
}

/** `max-age` of the JWKS in seconds. Plus `RELOAD_INTERVAL`, it must stay below `PUBLISHED_BEFORE_USE`. */
export const JWKS_MAX_AGE_SECONDS = 30
/** A node that missed the event of a rotation has the new key after this time. */
export const RELOAD_INTERVAL = 10 * SECOND
/** Delay before a new key signs: longer than one node's reload plus the expiry of a verifier's cached JWKS. */
export const PUBLISHED_BEFORE_USE = 60 * SECOND
/** An old key stays published this much longer than the last token that it can have signed, for clock skew. */
export const RETIREMENT_LEEWAY = 60 * SECOND
/** Anyone can make up key ids, so unknown ones cause at most one read of the store in this time. */
const UNKNOWN_KID_INTERVAL = SECOND

interface HeldKey extends SigningKey {
  opened: OpenedSigningKey
}

/**
 * @param longestTokenSeconds the lifetime of the longest-lived token that these keys sign
 * @param reloadInterval in milliseconds; shorter where not every change causes an event
 */
export function createSigningKeys(deps: {
  storage: Storage
  clock: Clock
  secrets: Secrets
  log: Log
  longestTokenSeconds: number
  reloadInterval?: number
}): SigningKeys {
  const { storage, clock, secrets, log, longestTokenSeconds, reloadInterval = RELOAD_INTERVAL } = deps
  const { signingKeys } = storage.store
  /** Oldest `signsFrom` first. */
  let keys: HeldKey[] = []
  let unknownReadAt: Instant = Number.NEGATIVE_INFINITY
  let unknownRead: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = () => {}
  let isFailing = false

  return {
    async load() {
      const stored = await signingKeys.list(clock.now())
      if (stored.length === 0) await signingKeys.insertFirst(newSigningKey(clock.now()))
      await reload()
    },

    reload,

    start() {
      const refresh = () => {
        reload().then(
          () => {
            isFailing = false
          },
          error => {
            // Logged once per outage: the interval may be as short as half a second.
            if (!isFailing) log.error({ error: String(error) }, 'signing keys could not be read')
            isFailing = true
          },
        )
      }
      unsubscribe = storage.events.subscribe(event => {
        if (event.type === 'signing_keys.changed') refresh()
      })
      timer = setInterval(refresh, reloadInterval).unref()
    },

    stop() {
      unsubscribe()
      clearInterval(timer)
    },

    current() {
      const now = clock.now()
      for (let index = keys.length - 1; index >= 0; index--) {
        if (keys[index]!.signsFrom <= now) return keys[index]!.opened
      }
      // Another node, whose clock is slightly ahead, created the first key.
      if (!keys[0]) throw new Error('signing keys are used before load()')
      return keys[0].opened
    },

    async find(kid) {
      const known = held(kid)
      if (known) return known
      await readForUnknown()
      return held(kid)
    },

    jwks() {
      return { keys: published().map(toJwk) }
    },

    async rotate() {
      const now = clock.now()
      const key = newSigningKey(now, now + PUBLISHED_BEFORE_USE)
      const othersRetireAt = key.signsFrom + longestTokenSeconds * SECOND + RETIREMENT_LEEWAY
      await storage.transaction(
        async tx => {
          await tx.signingKeys.insertNext(key, othersRetireAt)
          tx.publish({ type: 'signing_keys.changed' })
          return true
        },
        async store => (await store.signingKeys.list(now)).some(({ id }) => id === key.id) || undefined,
      )
      await reload()
      return { kid: key.id, signsFrom: key.signsFrom }
    },
  }

  async function reload(): Promise<void> {
    const stored = await signingKeys.list(clock.now())
    const before = new Map(keys.map(key => [key.id, key]))
    // Keys that are open already are not opened again.
    keys = stored.map(key => ({ ...(before.get(key.id) ?? openKey(key)), ...key }))
  }

  /** Reads the keys for an unknown id: one read at a time and at most one a second, over all unknown ids. */
  async function readForUnknown(): Promise<void> {
    const now = clock.now()
    if (!unknownRead) {
      if (now - unknownReadAt < UNKNOWN_KID_INTERVAL) return
      unknownReadAt = now
      unknownRead = reload().finally(() => {
        unknownRead = null
      })
    }
    await unknownRead
  }

  function held(kid: string): OpenedSigningKey | null {
    return published().find(({ id }) => id === kid)?.opened ?? null
  }

  function published(): HeldKey[] {
    const now = clock.now()
    return keys.filter(key => key.retiresAt === null || key.retiresAt > now)
  }

  function newSigningKey(createdAt: Instant, signsFrom = createdAt): SigningKey {
    const id = newId(createdAt)
    const seed = randomBytes(SEED_BYTES)
    return {
      id,
      publicKey: keyPairOf(seed).publicKey.toString('base64url'),
      sealedSeed: secrets.seal('signing-key', seed, id),
      createdAt,
      signsFrom,
      retiresAt: null,
    }
  }

  /** @throws SealError also where the public key does not belong to the sealed seed: the row was tampered with. */
  function openKey(key: SigningKey): HeldKey {
    const { publicKey, secretKey } = keyPairOf(secrets.open('signing-key', key.sealedSeed, key.id))
    if (publicKey.toString('base64url') !== key.publicKey) {
      throw new SealError(`the public half of signing key ${key.id} is not that of its sealed seed`)
    }
    return { ...key, opened: { kid: key.id, secretKey } }
  }
}

function toJwk({ id, publicKey }: SigningKey): PublicJwk {
  return { kty: 'OKP', crv: 'Ed25519', x: publicKey, kid: id, alg: 'EdDSA', use: 'sig' }
}
