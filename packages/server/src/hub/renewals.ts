import { allows } from '../api-keys/api-key.ts'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { ConnectionIdentity } from '../events.ts'
import type { Log } from '../log.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type CloseStatus, refusalOfKey, TOKEN_EXPIRED } from './close-codes.ts'
import type { HubPorts, TokenClaims } from './hub-ports.ts'
import type { KeyStatusLoader } from './key-status-loader.ts'
import type { Metering } from './metering.ts'
import type { PresenceRecorder } from './presence.ts'
import { newBucket, RENEWAL_ALLOWANCE, takeRenewal } from './rate-limits.ts'
import type { Registry } from './registry.ts'

/** `token_expiring` is sent this long before the token or its key expires. */
const EXPIRY_NOTICE_SECONDS = 60

export interface RenewalsDeps {
  clock: Clock
  log: Log
  ports: Pick<HubPorts, 'verifyToken'>
  metering: Pick<Metering, 'countConnectedTime'>
  registry: Registry
  keyStatuses: KeyStatusLoader
  presence: Pick<PresenceRecorder, 'add'>
  locations: { enter(connection: ConnectionIdentity): Promise<unknown> | undefined }
}

export interface Renewals {
  /**
   * Replaces the connection's token by another one of the same owner. The connection then belongs to the key of the new
   * token. The old token stays in use if the agent gets `invalid_token`, since the new one is refused, or
   * `rate_limited`, since another renewal is under way, the agent renews too often, or the new token cannot be verified
   * at the moment. Never rejects.
   */
  renew(connection: AgentConnection, token: string): Promise<void>
  /**
   * Sends `token_expiring` once, when at most 60 s remain, and again only after a renewal has extended the expiry. If a
   * renewal does not extend it, since the key itself expires then, a further notice would make the agent renew again
   * and again.
   */
  notifyOfExpiry(connection: AgentConnection, now: Instant): void
}

export function expiryCloseStatus(connection: AgentConnection, now: Instant): CloseStatus | null {
  return now >= connection.expiresAt ? TOKEN_EXPIRED : null
}

export function createRenewals(deps: RenewalsDeps): Renewals {
  const { clock, log, ports, metering, registry, keyStatuses, presence, locations } = deps

  return {
    async renew(connection, token) {
      if (connection.renewalKeyId !== null) {
        connection.sendError('rate_limited', 'A renewal is under way; send one token at a time.')
        return
      }
      const now = clock.now()
      connection.renewalBucket ??= newBucket(RENEWAL_ALLOWANCE, now)
      if (!takeRenewal(connection.renewalBucket, now)) {
        connection.sendError(
          'rate_limited',
          'This connection was renewed too often; its token is valid longer.',
        )
        return
      }
      connection.renewalKeyId = ''
      try {
        await renewOnce(connection, token)
      } catch (error) {
        log.warn({ err: error }, 'a renewal could not be checked')
        connection.sendError('rate_limited', 'The token cannot be checked right now; send it again.')
      } finally {
        connection.renewalKeyId = null
      }
    },
    notifyOfExpiry,
  }

  async function renewOnce(connection: AgentConnection, token: string): Promise<void> {
    const claims = await ports.verifyToken(token)
    if (connection.state !== 'open') return
    const isUsable = claims?.agentId === connection.userId && claims.expiresAt > clock.now()
    if (!claims || !isUsable) {
      connection.sendError('invalid_token', 'This token is not valid or not of the same owner.')
      return
    }
    bindNewKey(connection, claims.keyId)
    const nodesNotified = locations.enter({ ...connection.identity, keyId: claims.keyId })
    const key = await keyStatuses.loadFor(connection, claims.keyId, nodesNotified)
    if (connection.state !== 'open') return
    const refusal = refusalOfKey(key, connection, clock.now())
    if (refusal || !allows(claims.scopes, 'agent:connect')) {
      unbindNewKey(connection)
      connection.sendError('invalid_token', 'The key of this token does not open the hub now.')
      return
    }
    const previousExpiry = connection.expiresAt
    applyClaims(connection, claims)
    connection.update(key!)
    presence.add(connection)
    const now = clock.now()
    if (connection.expiresAt > previousExpiry) connection.expiryNoticeSent = false
    connection.send({ type: 'token_accepted', ...connection.lifetime(now) })
    notifyOfExpiry(connection, now)
  }

  function notifyOfExpiry(connection: AgentConnection, now: Instant): void {
    if (connection.expiryNoticeSent || connection.expiresAt - now > EXPIRY_NOTICE_SECONDS * SECOND) return
    connection.expiryNoticeSent = true
    connection.send({ type: 'token_expiring', ...connection.lifetime(now) })
  }

  /**
   * Binds the connection to the new key before that key's status is loaded, so that a concurrent revocation is noticed.
   */
  function bindNewKey(connection: AgentConnection, keyId: string): void {
    connection.renewalKeyId = keyId
    registry.bindKey(keyId, connection)
  }

  function unbindNewKey(connection: AgentConnection): void {
    if (connection.renewalKeyId !== connection.keyId) registry.unbindKey(connection.renewalKeyId!, connection)
  }

  function applyClaims(connection: AgentConnection, claims: TokenClaims): void {
    if (claims.keyId !== connection.keyId) {
      metering.countConnectedTime(connection, clock.now())
      registry.unbindKey(connection.keyId, connection)
    }
    connection.keyId = claims.keyId
    connection.scopes = claims.scopes
    connection.tokenExpiresAt = claims.expiresAt
  }
}
