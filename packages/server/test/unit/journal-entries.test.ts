import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEntry, serviceIdOf, toLedgerEntry } from '../../src/backup/journal-entry.ts'

/** A field of an entry, with values that are valid and values that are not. */
interface Field {
  right: unknown[]
  wrong: unknown[]
}

const TEXT: Field = { right: ['x'], wrong: ['', 1, null, undefined] }
/** The last valid value is the latest instant that a Date can have. */
const INSTANT: Field = { right: [0, 8.64e15], wrong: [-1, 8.64e15 + 1, 1.5, '1', null, undefined] }
const INTEGER: Field = { right: [-5, 0, 2 ** 53 - 1], wrong: [0.5, 2 ** 53, '1', null, undefined] }
const TEXT_LIST: Field = { right: [[], ['a', '']], wrong: [[1], ['a', null], 'a', {}, null, undefined] }

const orNull = ({ right, wrong }: Field): Field => ({
  right: [...right, null],
  wrong: wrong.filter(value => value !== null),
})
const optional = ({ right, wrong }: Field): Field => ({
  right: [...right, undefined],
  wrong: wrong.filter(value => value !== undefined),
})
const oneOf = (...right: string[]): Field => ({ right, wrong: ['', 'other', 1, null, undefined] })

const LEDGER_ENTRY = {
  id: 'i',
  userId: 'u',
  kind: 'charge',
  amount: -5,
  balanceAfter: 0,
  appId: null,
  description: '',
  cause: 'c',
  createdAt: 1,
}
/** Copies of an object, each without one of its fields. */
const copiesWithoutOneField = (whole: object) =>
  Object.keys(whole).map(name => ({ ...whole, [name]: undefined }) as unknown)
const SECRET = { hash: 'h', created_at: 1 }
const OTHER_FILE = { file: 'f', bytes: 1 }

/** The fields of each type of entry. */
const FIELDS: Record<string, Record<string, Field>> = {
  opened: {
    instance: optional(TEXT),
    file: optional(TEXT),
    beside: optional({
      right: [[], [OTHER_FILE, OTHER_FILE]],
      wrong: [
        [OTHER_FILE, { ...OTHER_FILE, bytes: -1 }],
        [{ ...OTHER_FILE, file: '' }],
        [1],
        [null],
        {},
        null,
      ],
    }),
  },
  closed: {},
  api_key: {
    id: TEXT,
    revoked_at: orNull(INSTANT),
    expires_at: orNull(INSTANT),
    allowed_networks: TEXT_LIST,
  },
  user: {
    id: TEXT,
    status: oneOf('active', 'suspended', 'deleted'),
    role: optional(oneOf('user', 'support', 'admin')),
    deletes_at: optional(orNull(INSTANT)),
  },
  app_secrets: {
    id: TEXT,
    secrets: {
      right: [[], [SECRET]],
      wrong: [...copiesWithoutOneField(SECRET).map(each => [each]), [1], {}, null],
    },
    removed_at: optional(INSTANT),
  },
  session: { id: TEXT, ended_by: oneOf('logout', 'reuse', 'revoked', 'suspended', 'deleted') },
  magic_link: { id: TEXT },
  invitation: { id: TEXT },
  ledger: {
    entry: {
      right: [LEDGER_ENTRY, { ...LEDGER_ENTRY, appId: 'a', keyId: null, lineageId: 'l' }],
      wrong: [
        ...copiesWithoutOneField(LEDGER_ENTRY),
        { ...LEDGER_ENTRY, amount: 0.5 },
        { ...LEDGER_ENTRY, appId: '' },
        { ...LEDGER_ENTRY, description: null },
        { ...LEDGER_ENTRY, keyId: '' },
        { ...LEDGER_ENTRY, lineageId: 1 },
        null,
        'x',
      ],
    },
  },
  trial_credit: { address_hash: TEXT, user_id: TEXT },
  policies: { policies: { right: [{}, { a: 1 }], wrong: [null, 'x', 1, undefined] }, changed_at: INSTANT },
  consent: {
    id: TEXT,
    user_id: TEXT,
    app_id: TEXT,
    scopes: TEXT_LIST,
    granted_at: INSTANT,
    revoked_at: orNull(INSTANT),
  },
  charge_authorization: { user_id: TEXT, app_id: TEXT, granted_at: INSTANT, revoked_at: orNull(INSTANT) },
}

const parse = (entry: object) => parseEntry(JSON.stringify(entry))

test('an entry is valid with any right value of each field, and with no wrong one', () => {
  for (const [type, fields] of Object.entries(FIELDS)) {
    const allFields = { at: INSTANT, ...fields }
    const completeEntry = {
      type,
      ...Object.fromEntries(Object.entries(allFields).map(([name, { right }]) => [name, right[0]])),
    }
    for (const [name, { right, wrong }] of Object.entries(allFields)) {
      for (const value of right) {
        const entry = JSON.parse(JSON.stringify({ ...completeEntry, [name]: value }))
        assert.deepEqual(parse(entry), entry, `${type}.${name}: ${JSON.stringify(value)}`)
      }
      for (const value of wrong)
        assert.deepEqual(
          parse({ ...completeEntry, [name]: value }),
          { problem: `has an entry "${type}" without a valid "${name}"` },
          `${type}.${name}: ${JSON.stringify(value)}`,
        )
    }
  }
})

test('the amounts of a charge are whole numbers of any sign', () => {
  for (const name of ['amount', 'balanceAfter']) {
    for (const value of INTEGER.right)
      assert.ok(!('problem' in parse({ type: 'ledger', at: 0, entry: { ...LEDGER_ENTRY, [name]: value } })))
    for (const value of INTEGER.wrong)
      assert.ok('problem' in parse({ type: 'ledger', at: 0, entry: { ...LEDGER_ENTRY, [name]: value } }))
  }
})

test('a line that is no object with a type is no entry, and a type of a newer version is named', () => {
  for (const line of ['', '{', 'null', '1', '"opened"', '[]', '{}', '{"type":1}', '{"type":null}'])
    assert.deepEqual(parseEntry(line), { problem: 'is not a journal entry' }, line)
  // `constructor` is a property of every object, but not a type of entry.
  for (const type of ['newer', 'constructor', ''])
    assert.deepEqual(parse({ type, at: 1 }), {
      problem: `has an entry "${type}", which this version does not know`,
    })
})

test('a charge of an older version belongs to no key', () => {
  const { appId: _, ...withoutAppId } = LEDGER_ENTRY
  const olderEntry = { ...withoutAppId, appId: null, kind: 'charge' as const } as Parameters<
    typeof toLedgerEntry
  >[0]
  assert.deepEqual(toLedgerEntry(olderEntry), { ...olderEntry, keyId: null, lineageId: null })
  assert.deepEqual(toLedgerEntry({ ...olderEntry, keyId: 'k', lineageId: 'l' }), {
    ...olderEntry,
    keyId: 'k',
    lineageId: 'l',
  })
})

test('the id of a service depends on its pepper only, and stays the same in later versions', () => {
  assert.equal(serviceIdOf(Buffer.alloc(32, 1)), serviceIdOf(Buffer.alloc(32, 1)))
  assert.match(serviceIdOf(Buffer.alloc(32, 1)), /^[0-9a-f]{16}$/)
  assert.notEqual(serviceIdOf(Buffer.alloc(32, 1)), serviceIdOf(Buffer.alloc(32, 2)))
})
