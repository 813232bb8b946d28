import type { DeviceAuthorization } from '../device-authorizations/device-authorization.ts'
import type { DeviceAuthorizationStore } from '../device-authorizations/device-authorization-store.ts'
import type { DeviceAuthorizationRow } from './schema.ts'
import { countOf, type Statements, toList } from './statements.ts'

export function createDeviceAuthorizationStore({ db }: Statements): DeviceAuthorizationStore {
  return {
    async insert(authorization) {
      const inserted = await db
        .insertInto('device_authorizations')
        .values(toRow(authorization))
        .onConflict(conflict => conflict.doNothing())
        .returning('id')
        .executeTakeFirst()
      return inserted !== undefined
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
    async recordPoll(id, now, step, longest) {
      const inTime = await db
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
      if (inTime) return true
      await db
        .updateTable('device_authorizations')
        .set(eb => ({ last_polled_at: now, poll_interval: eb('poll_interval', '+', step) }))
        .where('id', '=', id)
        .where('poll_interval', '<', longest)
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
      const old = db
        .selectFrom('device_authorizations')
        .select('id')
        .where('expires_at', '<', expiredBefore)
        .limit(batch)
      return countOf(await db.deleteFrom('device_authorizations').where('id', 'in', old).executeTakeFirst())
    },
  }

  async function findBy(
    column: 'id' | 'device_code_hash' | 'ticket_hash' | 'session_id',
    value: string,
  ): Promise<DeviceAuthorization | null> {
    const found = db.selectFrom('device_authorizations').selectAll().where(column, '=', value)
    return toAuthorization(await found.executeTakeFirst())
  }
}

function toRow(one: DeviceAuthorization): DeviceAuthorizationRow {
  return {
    id: one.id,
    client_id: one.clientId,
    device_code_hash: one.deviceCodeHash,
    user_code_hash: one.userCodeHash,
    ticket_hash: one.ticketHash,
    scopes: JSON.stringify(one.scopes),
    resource: one.resource,
    device_name: one.deviceName,
    address: one.address,
    network: one.network,
    client: one.client,
    created_at: one.createdAt,
    expires_at: one.expiresAt,
    poll_interval: one.pollInterval,
    last_polled_at: one.lastPolledAt,
    decision: one.decision,
    decided_at: one.decidedAt,
    user_id: one.userId,
    sign_in_id: one.signInId,
    auth_time: one.authTime,
    redeemed_at: one.redeemedAt,
    session_id: one.sessionId,
    key_id: one.keyId,
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
