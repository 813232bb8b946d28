import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import type { EmailAddress } from './email-address.ts'

/** Maximum number of people in one import, which is one transaction. */
export const MAX_IMPORTED_USERS = 1000

export interface UserToImport {
  email: EmailAddress
  name: string | null
  /** The operator's own id for the person. */
  externalId: string | null
}

export interface ImportedUser {
  id: string
  /** False if the address had an account already. Then `id` is the id of that account, which is unchanged. */
  isNew: boolean
}

/** Imports accounts. Each gets its trial credit, plan and welcome mail only at the first sign-in to it. */
export function createUserImport({ clock, audit }: { clock: Clock; audit: Audit }) {
  return function importUsers(people: readonly UserToImport[], by: ActedBy): Promise<ImportedUser[]> {
    // Ids are created here, since a transaction may run again.
    const usersWithIds = people.map(person => ({ ...person, id: newId(clock.now()) }))
    return audit.perform(by, async tx => {
      const createdAt = clock.now()
      const outcome: ImportedUser[] = []
      for (const { id, email, name, externalId } of usersWithIds) {
        const initialState = { role: 'user', status: 'active', deletesAt: null, locale: null } as const
        const user = { id, email, name, createdAt, ...initialState }
        const isNew = await tx.users.insertImported(user, externalId)
        outcome.push({ id: isNew ? id : ((await tx.users.findByEmail(email))?.id ?? id), isNew })
      }
      const createdCount = outcome.filter(({ isNew }) => isNew).length
      if (createdCount === 0) return withoutChanges(outcome)
      return auditedOutcome(outcome, {
        type: 'user.imported',
        subject: { type: 'user', id: null, user_id: null },
        before: null,
        after: { imported: createdCount, skipped: people.length - createdCount },
      })
    })
  }
}
