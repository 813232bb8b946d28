import assert from 'node:assert/strict'
import { relative } from 'node:path'
import { test } from 'node:test'
import { type ActedBy, type Audit, withoutChanges } from '../../src/audit/audit.ts'
import type { SubjectStates } from '../../src/backup/journal-writer.ts'
import { FACTS, type FactTable } from '../../src/endings/facts.ts'
import type { Storage, Transaction } from '../../src/store.ts'
import { sourceFiles, src } from './source.ts'

// Checked by the compiler: `npm run check` fails if a line below one of the directives compiles.

test('an ending operation without facts, or outside a transaction, does not compile', () => {
  const { end, ...otherOperations } = FACTS.sessions
  // @ts-expect-error: no facts of `sessions.end`
  const incompleteTable: FactTable = { ...FACTS, sessions: otherOperations }
  assert.notDeepEqual(Object.keys(incompleteTable.sessions), Object.keys(FACTS.sessions))

  const callers = {
    // @ts-expect-error: an ending outside of a transaction
    withoutTransaction: ({ store }: Storage) => store.sessions.end,
    // @ts-expect-error: an ending of which only the rows are written
    withoutEnding: (tx: Transaction) => tx.endings.insert,
    // @ts-expect-error: an event without its ending
    eventOnly: (tx: Transaction) => tx.publish({ type: 'session.ended', sessionId: '', userId: '' }),
    // @ts-expect-error: an ending without attribution
    unattributed: (tx: Transaction) => tx.sessions.end('', 'logout', 0),
  }
  assert.equal(Object.keys(callers).length, 4)
  assert.equal(typeof end, 'function')
})

test('an administrative operation that is not audited, or reports no changes, does not compile', () => {
  const callers = {
    // @ts-expect-error: an administrative operation in a transaction that is not audited
    unaudited: (tx: Transaction) => tx.users.suspend,
    // @ts-expect-error: an operation that does not say what is to be recorded
    silent: (audit: Audit, by: ActedBy) => audit.perform(by, async tx => tx.users.suspend('', 0)),
    reporting: (audit: Audit, by: ActedBy) => audit.perform(by, async () => withoutChanges(null)),
  }
  assert.equal(Object.keys(callers).length, 3)
})

test('only audit.ts turns a transaction into an audited one', async () => {
  const files = await sourceFiles()
  const castingFiles = files.filter(({ text }) => /as AuditedTransaction|\.audit\.append\(/.test(text))
  assert.deepEqual(
    castingFiles.map(({ path }) => relative(src, path)),
    ['audit/audit.ts'],
  )
})

test('a kind of ending without a journal entry does not compile', () => {
  const noSubjects = async () => []
  const completeStates: SubjectStates = { api_key: noSubjects, session: noSubjects, user: noSubjects }
  // @ts-expect-error: `npm run check` fails here when this compiles
  const incompleteStates: SubjectStates = { api_key: noSubjects, session: noSubjects }
  assert.notDeepEqual(Object.keys(incompleteStates), Object.keys(completeStates))
})
