import type { DeviceAuthorization } from '../device-authorizations/device-authorization.ts'
import type { DeviceAuthorizationStore } from '../device-authorizations/device-authorization-store.ts'
import type { DeviceAuthorizationRow } from './schema.ts'
import { countOf, type Statements, toList } from './statements.ts'

export function createDeviceAuthorizationStore({ db }: Statements): DeviceAuthorizationStore {
  return {
    async insert(authorization) {
      const insertedRow = await db
        .insertInto('device_authorizations')
        .values(toRow(authorization))
        .onConflict(conflict => conflict.doNothing())
        .returning('id')
        .executeTakeFirst()
      return insertedRow !== undefined
    },
    find: id => findBy('id', id),
    findByDeviceCode: hash => findBy('device_code_hash', hash),
    findByTicket: hash => findBy('ticket_hash', hash),
    findBySession: id => findBy('session_id', id),
    async findPendingByUserCode(hashes, now) {
      const row = await db
        .selectFrom('device_authorizations')
        .selectAll()
        .where('user_code_hash', 'in', [...hashes])
        .where('decision', 'is', null)
        .where('expires_at', '>', now)
        .executeTakeFirst()
      return toAuthorization(row)
    },
    async recordPoll(id, now, increment, maxInterval) {
      const acceptedRow = await db
        .updateTable('device_authorizations')
        .set({ last_polled_at: now })
        .where('id', '=', id)
        .where(eb =>
          eb.or([
            eb('last_polled_at', 'is', null),
            eb(eb('last_polled_at', '+', eb.ref('poll_interval')), '<=', now),
          ]),
        )
        .returning('id')
        .executeTakeFirst()
      if (acceptedRow) return true
      await db
        .updateTable('device_authorizations')
        .set(eb => ({ last_polled_at: now, poll_interval: eb('poll_interval', '+', increment) }))
        .where('id', '=', id)
        .where('poll_interval', '<', maxInterval)
        .execute()
      return false
    },
    async decide(id, decision, { userId, signInId, authTime, at }) {
      const row = await db
        .updateTable('device_authorizations')
        .set({ decision, decided_at: at, user_id: userId, sign_in_id: signInId, auth_time: authTime })
        .where('id', '=', id)
        .where('decision', 'is', null)
        .where('expires_at', '>', at)
        .returningAll()
        .executeTakeFirst()
      return toAuthorization(row)
    },
    async redeem(id, sessionId, at) {
      const row = await db
        .updateTable('device_authorizations')
        .set({ redeemed_at: at, session_id: sessionId })
        .where('id', '=', id)
        .where('decision', '=', 'approved')
        .where('redeemed_at', 'is', null)
        .where('expires_at', '>', at)
        .returningAll()
        .executeTakeFirst()
      return toAuthorization(row)
    },
    async claimKey(sessionId, keyId, redeemedAfter) {
      const row = await db
        .updateTable('device_authorizations')
        .set({ key_id: keyId })
        .where('session_id', '=', sessionId)
        .where('key_id', 'is', null)
        .where('redeemed_at', '>', redeemedAfter)
        .returningAll()
        .executeTakeFirst()
      return toAuthorization(row)
    },
    async prune(expiredBefore, batch) {
      const prunableIds = db
        .selectFrom('device_authorizations')
        .select('id')
        .where('expires_at', '<', expiredBefore)
        .limit(batch)
      return countOf(
        await db.deleteFrom('device_authorizations').where('id', 'in', prunableIds).executeTakeFirst(),
      )
    },
  }

  async function findBy(
    column: 'id' | 'device_code_hash' | 'ticket_hash' | 'session_id',
    value: string,
  ): Promise<DeviceAuthorization | null> {
    const query = db.selectFrom('device_authorizations').selectAll().where(column, '=', value)
    return toAuthorization(await query.executeTakeFirst())
  }
}

function toRow(authorization: DeviceAuthorization): DeviceAuthorizationRow {
  return {
    id: authorization.id,
    client_id: authorization.clientId,
    device_code_hash: authorization.deviceCodeHash,
    user_code_hash: authorization.userCodeHash,
    ticket_hash: authorization.ticketHash,
    scopes: JSON.stringify(authorization.scopes),
    resource: authorization.resource,
    device_name: authorization.deviceName,
    address: authorization.address,
    network: authorization.network,
    client: authorization.client,
    created_at: authorization.createdAt,
    expires_at: authorization.expiresAt,
    poll_interval: authorization.pollInterval,
    last_polled_at: authorization.lastPolledAt,
    decision: authorization.decision,
    decided_at: authorization.decidedAt,
    user_id: authorization.userId,
    sign_in_id: authorization.signInId,
    auth_time: authorization.authTime,
    redeemed_at: authorization.redeemedAt,
    session_id: authorization.sessionId,
    key_id: authorization.keyId,
  }
}

function toAuthorization(row: DeviceAuthorizationRow | undefined): DeviceAuthorization | null {
  if (!row) return null
  return {
    id: row.id,
    clientId: row.client_id,
    deviceCodeHash: row.device_code_hash,
    userCodeHash: row.user_code_hash,
    ticketHash: row.ticket_hash,
    scopes: toList(row.scopes),
    resource: row.resource,
    deviceName: row.device_name,
    address: row.address,
    network: row.network,
    client: row.client,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    pollInterval: row.poll_interval,
    lastPolledAt: row.last_polled_at,
    decision: row.decision,
    decidedAt: row.decided_at,
    userId: row.user_id,
    signInId: row.sign_in_id,
    authTime: row.auth_time,
    redeemedAt: row.redeemed_at,
    sessionId: row.session_id,
    keyId: row.key_id,
  }
}
