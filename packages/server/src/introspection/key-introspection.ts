import type { Json } from '@keyway/sdk/protocol'
import { type OwnedApiKey, refusalOf } from '../api-keys/api-key.ts'
import { coversKey } from '../apps/app.ts'
import { formatMoney } from '../billing/money.ts'
import { capsOf, NOTHING_SPENT, remainingOf, type Spent } from '../billing/spend.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { KeyLimiter, LeftOfLimits } from '../limits/limits.ts'
import { sha256 } from '../secrets.ts'
import type { Store } from '../store.ts'
import type { Meter } from '../usage/meter.ts'
import {
  INACTIVE,
  type IntrospectionAnswer,
  mayNotConsume,
  type RequestingApp,
  scopeOf,
  seconds,
  type TokenCheck,
} from './introspection-answer.ts'

/** Introspection of API keys, and of the keys behind agent tokens. */
export interface KeyIntrospection {
  introspect(key: string, app: RequestingApp | undefined, consume: number): Promise<IntrospectionAnswer>
  introspectMany(
    checks: readonly TokenCheck[],
    app: RequestingApp,
  ): Promise<(IntrospectionAnswer | KeywayError)[]>
  /** Null for an unknown key, one of another owner, and one that is not usable. */
  find(keyId: string, ownerId: string): Promise<OwnedApiKey | null>
  /** External id, metadata and remaining limits of the key, for apps that cover it. */
  forCovering(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<Record<string, Json>>
}

export interface KeyIntrospectionDeps {
  store: Pick<Store, 'apiKeys' | 'billing'>
  clock: Clock
  limiter: Pick<KeyLimiter, 'consume' | 'left'>
  meter: Meter
  publicUrl: string
}

/** Values of keys that are stored outside their rows, by key id and by lineage id. */
interface Notes {
  metadata: ReadonlyMap<string, string> | null
  spent: ReadonlyMap<string, Spent> | null
}

export function createKeyIntrospection({
  store,
  clock,
  limiter,
  meter,
  publicUrl,
}: KeyIntrospectionDeps): KeyIntrospection {
  return {
    async introspect(key, app, consume) {
      const apiKey = await usableKey(key)
      return apiKey ? { ...claimsOf(apiKey), ...(await forCovering(apiKey, app, consume)) } : INACTIVE
    },

    async introspectMany(checks, app) {
      const keys = await Promise.all(checks.map(({ token }) => usableKey(token)))
      const held: ({ apiKey: OwnedApiKey; left: LeftOfLimits | null | KeywayError } | null)[] = []
      // Sequentially, so that a key that is presented twice is counted in this order.
      for (const [n, apiKey] of keys.entries())
        held.push(apiKey && { apiKey, left: await orRefusal(leftOf(apiKey, app, checks[n]!.consume)) })
      const covered = held.filter(each => each?.left && !(each.left instanceof KeywayError))
      const notes = await notesOf(covered.map(each => each!.apiKey))
      return held.map(each => {
        if (!each) return INACTIVE
        const { apiKey, left } = each
        if (left instanceof KeywayError) return left
        return { ...claimsOf(apiKey), ...(left && extrasOf(apiKey, left, notes)) }
      })
    },

    async find(keyId, ownerId) {
      const id = parseId(keyId)
      const [apiKey] = id ? await store.apiKeys.findMany([id]) : []
      if (apiKey?.userId !== ownerId) return null
      meter.count(ownerId, apiKey.id, 'introspections')
      return isUsable(apiKey) ? apiKey : null
    },

    forCovering,
  }

  async function forCovering(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<Record<string, Json>> {
    const left = await leftOf(apiKey, app, consume)
    return left ? extrasOf(apiKey, left, await notesOf([apiKey])) : {}
  }

  /** Null for an unknown key and one that is not usable. */
  async function usableKey(key: string): Promise<OwnedApiKey | null> {
    const apiKey = await store.apiKeys.findByHash(sha256(key))
    if (!apiKey) return null
    meter.count(apiKey.userId, apiKey.id, 'introspections')
    return isUsable(apiKey) ? apiKey : null
  }

  function claimsOf(apiKey: OwnedApiKey) {
    return {
      active: true as const,
      type: 'api_key',
      iss: publicUrl,
      sub: apiKey.userId,
      client_id: apiKey.appId,
      key_id: apiKey.id,
      ...scopeOf(apiKey.scopes),
      iat: seconds(apiKey.createdAt),
      ...(apiKey.expiresAt !== null && { exp: seconds(apiKey.expiresAt) }),
    }
  }

  /** Null if the app does not cover the key. */
  async function leftOf(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<LeftOfLimits | null> {
    if (app && coversKey(app, apiKey)) return consume > 0 ? consumed(apiKey, consume) : limiter.left(apiKey)
    if (consume > 0) throw mayNotConsume()
    return null
  }

  /** Metadata and spending are read only for keys that have metadata or a spend limit. */
  async function notesOf(keys: readonly OwnedApiKey[]): Promise<Notes> {
    const described = keys.filter(({ metadataBytes }) => metadataBytes !== null)
    const capped = keys.filter(hasSpendLimit)
    return {
      metadata: described.length === 0 ? null : await store.apiKeys.metadataOf(described.map(({ id }) => id)),
      spent: capped.length === 0 ? null : await store.billing.spentOf(capped.map(key => key.lineageId)),
    }
  }

  function extrasOf(
    apiKey: OwnedApiKey,
    left: LeftOfLimits,
    { metadata, spent }: Notes,
  ): Record<string, Json> {
    const text = metadata?.get(apiKey.id)
    return {
      external_id: apiKey.externalId,
      metadata: text === undefined ? null : (JSON.parse(text) as Json),
      limits: {
        ...leftObject(left),
        ...(hasSpendLimit(apiKey) && { spend: spendLeft(apiKey, spent?.get(apiKey.lineageId), clock.now()) }),
      },
    }
  }

  async function consumed(apiKey: OwnedApiKey, count: number): Promise<LeftOfLimits> {
    try {
      return await limiter.consume(apiKey, count)
    } catch (error) {
      if (error instanceof KeywayError) meter.countRefusal(apiKey.userId, apiKey.id, error.code)
      throw error
    }
  }

  function isUsable(apiKey: OwnedApiKey): boolean {
    return refusalOf(apiKey, { now: clock.now() }) === null
  }
}

/** Contains only the kinds of limits that the key has. */
function leftObject({ requests, quota }: LeftOfLimits): Record<string, Json> {
  return {
    ...(requests.length > 0 && {
      requests: requests.map(({ limit, remaining, resetSeconds }) => ({
        limit,
        remaining,
        reset_seconds: resetSeconds,
      })),
    }),
    ...(quota !== null && { quota: { remaining: quota } }),
  }
}

function hasSpendLimit({ limits, operatorLimits }: OwnedApiKey): boolean {
  return limits.spend.length > 0 || operatorLimits.spend.length > 0
}

/** The remaining amount of each spend limit. */
function spendLeft(key: OwnedApiKey, spent: Spent = NOTHING_SPENT, now: Instant): Json[] {
  const caps = capsOf(key.limits.spend, key.operatorLimits.spend)
  return remainingOf(caps, spent, now).map(({ per, limit, remaining, endsAt }) => ({
    per,
    amount: formatMoney(limit),
    remaining: formatMoney(remaining),
    ...(endsAt !== null && { reset_seconds: Math.ceil((endsAt - now) / SECOND) }),
  }))
}

/** The refusal as a value; other errors are thrown. */
export async function orRefusal<Value>(call: Promise<Value>): Promise<Value | KeywayError> {
  try {
    return await call
  } catch (error) {
    if (error instanceof KeywayError) return error
    throw error
  }
}
