import type { Json } from '@keyway/sdk/protocol'
import { type OwnedApiKey, refusalOf } from '../api-keys/api-key.ts'
import { coversKey } from '../apps/app.ts'
import { formatMoney } from '../billing/money.ts'
import { capsOf, NOTHING_SPENT, remainingOf, type SpentSums } from '../billing/spend.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { KeyLimiter, LeftOfLimits } from '../limits/limits.ts'
import { sha256 } from '../secrets.ts'
import type { Store } from '../store.ts'
import type { Meter } from '../usage/meter.ts'
import {
  consumptionForbidden,
  INACTIVE,
  type IntrospectionAnswer,
  type RequestingApp,
  scopeMembers,
  type TokenCheck,
  toSeconds,
} from './introspection-answer.ts'

/** Introspection of API keys, and of the keys behind agent tokens. */
export interface KeyIntrospection {
  introspect(key: string, app: RequestingApp | undefined, consume: number): Promise<IntrospectionAnswer>
  introspectMany(
    checks: readonly TokenCheck[],
    app: RequestingApp,
  ): Promise<(IntrospectionAnswer | KeywayError)[]>
  /** The key; null if it is unknown, belongs to another owner, or is not usable. */
  find(keyId: string, ownerId: string): Promise<OwnedApiKey | null>
  /**
   * Consumes `consume` calls of the key, and returns its external id, metadata and remaining limits. Returns an empty
   * object unless `app` has rights over the key (`coversKey`).
   *
   * @throws KeywayError the errors that `Introspection.introspect` lists, if `consume` is above 0
   */
  detailsForApp(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<Record<string, Json>>
}

export interface KeyIntrospectionDeps {
  store: Pick<Store, 'apiKeys' | 'billing'>
  clock: Clock
  limiter: Pick<KeyLimiter, 'consume' | 'remaining'>
  meter: Meter
  publicUrl: string
}

/**
 * Values of keys that are stored in other rows: metadata by key id, and spending by lineage id. Null where no key has
 * metadata, or a spend limit.
 */
interface StoredDetails {
  metadata: ReadonlyMap<string, string> | null
  spent: ReadonlyMap<string, SpentSums> | null
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
      return apiKey ? { ...claimsOf(apiKey), ...(await detailsForApp(apiKey, app, consume)) } : INACTIVE
    },

    async introspectMany(checks, app) {
      const keys = await Promise.all(checks.map(({ token }) => usableKey(token)))
      const results: ({ apiKey: OwnedApiKey; remaining: LeftOfLimits | null | KeywayError } | null)[] = []
      // One after the other, so that calls of a key that occurs several times are consumed in the order of the request.
      for (const [n, apiKey] of keys.entries())
        results.push(
          apiKey && {
            apiKey,
            remaining: await refusalAsValue(limitsAfterConsuming(apiKey, app, checks[n]!.consume)),
          },
        )
      const acceptedResults = results.filter(
        each => each?.remaining && !(each.remaining instanceof KeywayError),
      )
      const details = await readDetails(acceptedResults.map(each => each!.apiKey))
      return results.map(each => {
        if (!each) return INACTIVE
        const { apiKey, remaining } = each
        if (remaining instanceof KeywayError) return remaining
        return { ...claimsOf(apiKey), ...(remaining && detailsOf(apiKey, remaining, details)) }
      })
    },

    async find(keyId, ownerId) {
      const id = parseId(keyId)
      const [apiKey] = id ? await store.apiKeys.findMany([id]) : []
      if (apiKey?.userId !== ownerId) return null
      meter.count(ownerId, apiKey.id, 'introspections')
      return isUsable(apiKey) ? apiKey : null
    },

    detailsForApp,
  }

  async function detailsForApp(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<Record<string, Json>> {
    const remaining = await limitsAfterConsuming(apiKey, app, consume)
    return remaining ? detailsOf(apiKey, remaining, await readDetails([apiKey])) : {}
  }

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
      ...scopeMembers(apiKey.scopes),
      iat: toSeconds(apiKey.createdAt),
      ...(apiKey.expiresAt !== null && { exp: toSeconds(apiKey.expiresAt) }),
    }
  }

  /**
   * Consumes calls of the key, and returns what remains of its limits. Without an app that has rights over the key
   * (`coversKey`) returns null, or throws `forbidden` if calls are to be consumed.
   */
  async function limitsAfterConsuming(
    apiKey: OwnedApiKey,
    app: RequestingApp | undefined,
    consume: number,
  ): Promise<LeftOfLimits | null> {
    if (app && coversKey(app, apiKey))
      return consume > 0 ? consumeCalls(apiKey, consume) : limiter.remaining(apiKey)
    if (consume > 0) throw consumptionForbidden()
    return null
  }

  async function readDetails(keys: readonly OwnedApiKey[]): Promise<StoredDetails> {
    const keysWithMetadata = keys.filter(({ metadataBytes }) => metadataBytes !== null)
    const keysWithSpendLimit = keys.filter(hasSpendLimit)
    return {
      metadata:
        keysWithMetadata.length === 0
          ? null
          : await store.apiKeys.metadataOf(keysWithMetadata.map(({ id }) => id)),
      spent:
        keysWithSpendLimit.length === 0
          ? null
          : await store.billing.spentOf(keysWithSpendLimit.map(key => key.lineageId)),
    }
  }

  function detailsOf(
    apiKey: OwnedApiKey,
    remaining: LeftOfLimits,
    { metadata, spent }: StoredDetails,
  ): Record<string, Json> {
    const text = metadata?.get(apiKey.id)
    return {
      external_id: apiKey.externalId,
      metadata: text === undefined ? null : (JSON.parse(text) as Json),
      limits: {
        ...remainingLimitsObject(remaining),
        ...(hasSpendLimit(apiKey) && {
          spend: remainingSpend(apiKey, spent?.get(apiKey.lineageId), clock.now()),
        }),
      },
    }
  }

  async function consumeCalls(apiKey: OwnedApiKey, count: number): Promise<LeftOfLimits> {
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

/** The JSON form of the remaining limits, with only the kinds of limits that the key has. */
function remainingLimitsObject({ requests, quota }: LeftOfLimits): Record<string, Json> {
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

function remainingSpend(key: OwnedApiKey, spent: SpentSums = NOTHING_SPENT, now: Instant): Json[] {
  const caps = capsOf(key.limits.spend, key.operatorLimits.spend)
  return remainingOf(caps, spent, now).map(({ per, limit, remaining, endsAt }) => ({
    per,
    amount: formatMoney(limit),
    remaining: formatMoney(remaining),
    ...(endsAt !== null && { reset_seconds: Math.ceil((endsAt - now) / SECOND) }),
  }))
}

/** Returns a refusal as a value instead of throwing it; other errors are thrown. */
export async function refusalAsValue<Value>(call: Promise<Value>): Promise<Value | KeywayError> {
  try {
    return await call
  } catch (error) {
    if (error instanceof KeywayError) return error
    throw error
  }
}
