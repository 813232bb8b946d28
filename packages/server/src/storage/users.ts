import type { Insertable } from 'kysely'
import { toSlice } from '../paging.ts'
import type { User, UserStatus } from '../users/user.ts'
import type { AdministrativeUserChanges, UserChanges, UserStore } from '../users/user-store.ts'
import { newestFirst } from './paging.ts'
import type { UserRow } from './schema.ts'
import type { Statements } from './statements.ts'
import { toUser } from './user-row.ts'
import { searchUsers } from './user-search.ts'

/** The name of a row of `instance` that serves only as a lock; upserted, since it may be missing after a restore. */
const ADMINISTRATORS_LOCK = 'administrators-lock'

export function createUserStore(statements: Statements): UserStore & UserChanges & AdministrativeUserChanges {
  const { db } = statements
  return {
    async find(id) {
      return toUser(await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst())
    },
    async findByEmail(email) {
      return toUser(await db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst())
    },
    async findMany(ids) {
      if (ids.length === 0) return []
      const rows = await db
        .selectFrom('users')
        .selectAll()
        .where('id', 'in', [...ids])
        .execute()
      return rows.map(row => toUser(row)!)
    },
    insert: user => insert(toRow(user)),
    insertImported: (user, externalId) =>
      insert({ ...toRow(user), external_id: externalId, awaits_onboarding: 1 }),
    async claimOnboarding(id) {
      const row = await db
        .updateTable('users')
        .set({ awaits_onboarding: null })
        .where('id', '=', id)
        .where('awaits_onboarding', '=', 1)
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    async externalIdOf(id) {
      const row = await db.selectFrom('users').select('external_id').where('id', '=', id).executeTakeFirst()
      return row?.external_id ?? null
    },
    rename: (id, name) => update(id, { name }),
    async scheduleDeletion(id, deletesAt) {
      return toUser(
        await db
          .updateTable('users')
          .set({ deletes_at: deletesAt })
          .where('id', '=', id)
          .where('status', '=', 'active')
          .where('deletes_at', 'is', null)
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async cancelDeletion(id) {
      return toUser(
        await db
          .updateTable('users')
          .set({ deletes_at: null })
          .where('id', '=', id)
          .where('status', '<>', 'deleted')
          .where('deletes_at', 'is not', null)
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async postponeDeletion(id, until, now) {
      return toUser(
        await db
          .updateTable('users')
          .set({ deletes_at: until })
          .where('id', '=', id)
          .where('deletes_at', '<=', now)
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async changeEmail(id, from, to) {
      const accountWithAddress = db
        .selectFrom('users as other')
        .select('other.id')
        .where('other.email', '=', to)
      return toUser(
        await db
          .updateTable('users')
          .set({ email: to })
          .where('id', '=', id)
          .where('status', '=', 'active')
          .where('email', '=', from)
          .where(({ not, exists }) => not(exists(accountWithAddress)))
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async dueForDeletion(now, limit) {
      const rows = await db
        .selectFrom('users')
        .select('id')
        .where('deletes_at', 'is not', null)
        .where('deletes_at', '<=', now)
        .orderBy('deletes_at')
        .limit(limit)
        .execute()
      return rows.map(({ id }) => id)
    },
    setLocale: (id, locale) => update(id, { locale }),
    setRole: (id, role) => update(id, { role }),
    suspend: id => changeStatus(id, 'active', 'suspended'),
    activate: id => changeStatus(id, 'suspended', 'active'),
    erase: (id, at) =>
      update(id, {
        status: 'deleted',
        name: null,
        email: null,
        external_id: null,
        locale: null,
        deleted_at: at,
        deletes_at: null,
      }),
    async lock(id) {
      // An update that changes nothing is the only row lock that both engines have.
      const row = await db
        .updateTable('users')
        .set(eb => ({ status: eb.ref('status') }))
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst()
      return toUser(row)
    },
    async lockAdministrators() {
      await db
        .insertInto('instance')
        .values({ name: ADMINISTRATORS_LOCK, value: '' })
        .onConflict(conflict => conflict.column('name').doUpdateSet({ value: '' }))
        .execute()
    },
    async isOnlyAdministrator(id) {
      const activeAdministrators = await findAdministrators(2)
      return activeAdministrators.length === 1 && activeAdministrators[0]!.id === id
    },
    async countAdministrators(atMost) {
      return (await findAdministrators(atMost)).length
    },
    async hasAdministrator() {
      return (await findAdministrators(1)).length > 0
    },
    search: (search, page) => searchUsers(statements, search, page),
    async list(page) {
      const rows = await db.selectFrom('users').selectAll().$call(newestFirst(page)).execute()
      return toSlice(
        rows.map(row => toUser(row)!),
        page.limit,
        user => ({ at: user.createdAt, id: user.id }),
      )
    },
  }

  async function insert(row: Insertable<UserRow>): Promise<boolean> {
    const insertedRow = await db
      .insertInto('users')
      .values(row)
      .onConflict(conflict => conflict.column('email').doNothing())
      .returning('id')
      .executeTakeFirst()
    return insertedRow !== undefined
  }

  /** Active ones. The redundant `role <> 'user'` is the condition of the partial index, so that the index is used. */
  function findAdministrators(limit: number): Promise<{ id: string }[]> {
    return db
      .selectFrom('users')
      .select('id')
      .where('role', '<>', 'user')
      .where('role', '=', 'admin')
      .where('status', '=', 'active')
      .limit(limit)
      .execute()
  }

  async function changeStatus(id: string, from: UserStatus, to: UserStatus): Promise<User | null> {
    return toUser(
      await db
        .updateTable('users')
        .set({ status: to })
        .where('id', '=', id)
        .where('status', '=', from)
        .returningAll()
        .executeTakeFirst(),
    )
  }

  /** Updates an account that is not deleted. */
  async function update(id: string, set: Partial<UserRow>): Promise<User | null> {
    return toUser(
      await db
        .updateTable('users')
        .set(set)
        .where('id', '=', id)
        .where('status', '<>', 'deleted')
        .returningAll()
        .executeTakeFirst(),
    )
  }
}

function toRow(user: User): Insertable<UserRow> {
  const { id, email, name, role, status, createdAt, deletesAt, locale } = user
  return {
    id,
    email,
    name,
    role,
    status,
    created_at: createdAt,
    deleted_at: null,
    deletes_at: deletesAt,
    locale,
  }
}
