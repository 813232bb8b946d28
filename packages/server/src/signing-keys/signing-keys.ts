import { randomBytes } from 'node:crypto'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { keyPairOf, SEED_BYTES } from './ed25519.ts'
import type { SigningKey } from './signing-key.ts'

export interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  kid: string
  alg: 'EdDSA'
  use: 'sig'
}

/** An Ed25519 key of ours, opened; held in memory only. */
export interface OpenedSigningKey {
  kid: string
  /** libsodium's 64-byte secret key. */
  secretKey: Buffer
}

export interface SigningKeys {
  /** Makes the first key where there is none, and opens what is stored. @throws SealError */
  load(): Promise<void>
  /** Reads the stored keys anew: on `signing_keys.changed`, and at an interval in case that was lost. */
  reload(): Promise<void>
  /** Follows the events, and a timer in case one was lost. */
  start(): void
  stop(): void
  /** Cheap and synchronous: the hot path asks it for every token. */
  current(): OpenedSigningKey
  /** A published key by `kid`; null for an unknown or retired one. Re-reads the store once for an unknown one. */
  find(kid: string): Promise<OpenedSigningKey | null>
  /** Every published key: signing, next and not yet retired. */
  jwks(): { keys: PublicJwk[] }
  /** Makes a new key, published now and signing once every node and verifier can know it. */
  rotate(): Promise<{ kid: string; signsFrom: number }>
}

/** How long verifiers may keep the published keys, in seconds. With a reload it must stay below `PUBLISHED_BEFORE_USE`. */
export const JWKS_MAX_AGE_SECONDS = 30
/** A node that missed the event of a rotation knows the new key after this. */
export const RELOAD_INTERVAL = 10 * SECOND
/** A new key waits this long before it signs: a node reloads and a verifier's copy runs out, one after the other, with room. */
export const PUBLISHED_BEFORE_USE = 60 * SECOND
/** An old key stays this much longer than the last token that it can have signed: a node's clock may lag a little. */
export const RETIREMENT_LEEWAY = 60 * SECOND
/** Unknown key ids cost a stranger nothing to make up, so they cause one read in this time. */
const UNKNOWN_KID_INTERVAL = SECOND

interface HeldKey extends SigningKey {
  opened: OpenedSigningKey
}

/**
 * @param longestTokenSeconds the lifetime of the longest-lived token that these keys sign
 * @param reloadInterval in milliseconds, where events do not tell of every change
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
            // Once an outage: the interval may be as short as half a second.
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
      // Another node made the very first key by a clock some milliseconds ahead of this one's.
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
    // What is opened already keeps its buffer, by which the signer remembers its key object.
    keys = stored.map(key => ({ ...(before.get(key.id) ?? openKey(key)), ...key }))
  }

  /** One read at a time and one a second, whoever asks for whatever. */
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

  /** @throws SealError also where the public half is not that of the sealed seed: somebody wrote into the table. */
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
