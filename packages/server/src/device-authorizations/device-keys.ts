import type { ApiKey, NewApiKey } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import { mailOwner } from '../api-keys/mail-owner.ts'
import { type Clock, DAY } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import type { Session } from '../sessions/session.ts'
import type { Storage, Transaction } from '../store.ts'
import { type DeviceAuthorization, KEY_CREATION_WINDOW } from './device-authorization.ts'
import { keyScopesOf } from './keyway-cli.ts'

/**
 * The maximum lifetime of a key that a device creates. Also the default, unless the maximum of the policies is shorter.
 */
export const MAX_DEVICE_KEY_LIFETIME = 90 * DAY

/** A new key as the device requests it. */
export type DeviceKey = Omit<NewApiKey, 'id' | 'scopes'> & {
  /** Undefined for all approved scopes. */
  scopes: readonly string[] | undefined
}

export interface DeviceKeys {
  /**
   * Creates the one key that an access token with `keys:create` may create, within ten minutes after the device code was
   * redeemed, and mails the owner.
   *
   * @param session the session of the access token
   * @throws KeywayError `insufficient_scope` (no scopes or unapproved ones; a second key; too late),
   *   `invalid_request` (an expiry beyond 90 days), and as `ApiKeys.create` does
   */
  create(session: Session, wanted: DeviceKey, caller: Caller): Promise<{ key: string; apiKey: ApiKey }>
}

export function createDeviceKeys({
  storage,
  clock,
  outbox,
  apiKeys,
  policies,
}: {
  storage: Storage
  clock: Clock
  outbox: Outbox
  apiKeys: Pick<ApiKeys, 'create'>
  policies: Pick<PolicyRegistry, 'read'>
}): DeviceKeys {
  return {
    async create(session, wanted, caller) {
      const authorization = await storage.store.deviceAuthorizations.findBySession(session.id)
      if (!authorization || authorization.keyId !== null) throw creationRightEnded()
      const allowedKey = {
        ...wanted,
        name: wanted.name ?? authorization.deviceName,
        scopes: approvedKeyScopes(wanted.scopes, authorization),
        expiresAt: expiryWithinLifetime(wanted.expiresAt, (await policies.read()).maxKeyLifetimeDays),
      }
      const mailId = newId(clock.now())
      return apiKeys.create(session.userId, allowedKey, caller, {
        refusal: creationRightEnded,
        consume: (tx, apiKey) => claim(tx, session.id, apiKey, mailId, authorization, caller),
      })
    },
  }

  /** Uses up the session's right to create a key, and mails the owner; false if the right was used or has lapsed. */
  async function claim(
    tx: Transaction,
    sessionId: string,
    apiKey: ApiKey,
    mailId: string,
    { deviceName }: DeviceAuthorization,
    { network }: Caller,
  ): Promise<boolean> {
    const now = clock.now()
    const claimedAuthorization = await tx.deviceAuthorizations.claimKey(
      sessionId,
      apiKey.id,
      now - KEY_CREATION_WINDOW,
    )
    if (!claimedAuthorization) return false
    const about = { kind: 'api_key_created_by_device', at: now, deviceName, network } as const
    await mailOwner(tx, outbox, apiKey, { id: mailId, now, about })
    return true
  }

  /**
   * The requested expiry, or the latest allowed one if none was requested. Does not compare a requested expiry with
   * `maxDays`, the maximum lifetime of keys by the policies: `apiKeys.create` does.
   */
  function expiryWithinLifetime(expiresAt: number | null, maxDays: number | null): number {
    const latestExpiry = clock.now() + MAX_DEVICE_KEY_LIFETIME
    if (expiresAt === null)
      return maxDays === null ? latestExpiry : Math.min(latestExpiry, clock.now() + maxDays * DAY)
    if (expiresAt <= latestExpiry) return expiresAt
    throw invalidRequest([
      { field: 'expires_at', message: 'must be at most 90 days ahead for a key that a device creates' },
    ])
  }
}

/** The requested scopes, all of which must be approved. Never empty, since a key without scopes may do everything. */
function approvedKeyScopes(
  wanted: readonly string[] | undefined,
  { scopes }: DeviceAuthorization,
): [string, ...string[]] {
  const approvedScopes = keyScopesOf(scopes)
  const [first, ...rest] = wanted ?? approvedScopes
  const unapprovedScope = wanted?.find(scope => !approvedScopes.includes(scope))
  if (first !== undefined && unapprovedScope === undefined) return [first, ...rest]
  const detail = `A key of this device may have the scopes that were approved: ${approvedScopes.join(', ')}.`
  throw new KeywayError('insufficient_scope', detail, { scope: unapprovedScope })
}

function creationRightEnded(): KeywayError {
  const detail =
    'This access token has created its key, or its ten minutes have passed. Ask for approval again.'
  return new KeywayError('insufficient_scope', detail)
}
