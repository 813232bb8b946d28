import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../../..')

/**
 * A plausible bug that the simulation must find. Each `find` occurs once in the file; `put` replaces it, and has no
 * type annotations, since those of the file are removed before.
 */
export interface BrokenVariant {
  name: string
  /** Below packages/server/src. */
  file: string
  edits: { find: string; put: string }[]
  /** Matches the violation by which the bug counts as found. Violations of other rules do not count. */
  shownBy: RegExp
}

export const BROKEN_VARIANTS: BrokenVariant[] = [
  {
    name: 'link-read-then-write',
    file: 'storage/magic-links.ts',
    edits: [
      {
        find: ".where('id', '=', id)\n        .where('used_at', 'is', null)",
        put: ".where('id', '=', id)",
      },
    ],
    shownBy: /the use of a link was undone or changed|one link opened/,
  },
  {
    name: 'rotation-without-condition',
    file: 'storage/sessions.ts',
    edits: [{ find: "        .where('counter', '=', counter)\n", put: '' }],
    shownBy: /refresh token was rotated twice|two living successors|counter of a session/,
  },
  {
    name: 'lock-left-out',
    file: 'api-keys/api-keys.ts',
    edits: [
      {
        find: 'await tx.users.lock(apiKey.userId)',
        put: 'await tx.users.find(apiKey.userId)',
      },
    ],
    shownBy: /keys of .* are active, of at most/,
  },
  {
    name: 'send-lock-left-out',
    file: 'storage/send-limits.ts',
    edits: [
      {
        find: "conflict.column('bucket').doUpdateSet(eb => ({ count: eb.ref('send_buckets.count') })),\n    )\n    .returning(['bucket', 'count'])\n    .execute()",
        put: "conflict.column('bucket').doNothing(),\n    )\n    .execute()\n    .then(() => db.selectFrom('send_buckets').selectAll().where('bucket', 'in', names).execute())",
      },
    ],
    shownBy: /mails to .* were accepted in a minute/,
  },
  {
    name: 'event-trusted',
    file: 'hub/revocations.ts',
    edits: [
      {
        find: 'await keyStatuses.load(keyId)',
        put: 'undefined',
      },
    ],
    shownBy: /of living key .* was stopped/,
  },
  {
    name: 'only-events',
    file: 'hub/revocations.ts',
    edits: [{ find: '    recheckAll(affectedKeyIds)\n', put: '' }],
    shownBy: /which has ended/,
  },
  {
    name: 'late-registration',
    file: 'hub/ready.ts',
    edits: [
      { find: '    registry.add(connection)\n', put: '' },
      {
        find: 'await keyStatuses.loadFor(connection, connection.keyId, nodesNotified)\n',
        put: 'await keyStatuses.loadFor(connection, connection.keyId, nodesNotified)\n    registry.add(connection)\n',
      },
    ],
    shownBy: /was open .* ms after its end/,
  },
  {
    name: 'charge-without-cause',
    file: 'billing/charges.ts',
    edits: [{ find: '  let cause = baseCause\n', put: '  let cause = baseCause + now\n' }],
    shownBy: /one Idempotency-Key was charged/,
  },
  {
    name: 'balance-unchecked',
    file: 'storage/ledger.ts',
    edits: [{ find: "    .where(eb => eb(eb('balance', '+', amount), '>=', 0))\n", put: '' }],
    shownBy: /a balance is negative|CHECK constraint failed: balances_not_negative/,
  },
  {
    name: 'unknown-commit-repeated',
    file: 'storage/postgres-transactions.ts',
    edits: [
      {
        find: 'const outcome = await resolveUnknownCommit(readBack, attempt.unknownCommit)\n        publishAfterCommit(attempt.events)\n        return outcome',
        put: 'continue',
      },
    ],
    shownBy: /was charged \d+ times|is not the sum|opened \d+ sessions|credits|UNIQUE constraint/,
  },
  {
    name: 'revocation-overwritten',
    file: 'storage/api-keys.ts',
    edits: [
      {
        find: ".where('id', '=', id)\n        .where('revoked_at', 'is', null)",
        put: ".where('id', '=', id)",
      },
    ],
    shownBy: /the revocation of a key was undone or changed/,
  },
  {
    name: 'reuse-ends-nothing',
    file: 'sessions/refresh.ts',
    edits: [{ find: '        await endFamily(family, caller)\n', put: '' }],
    shownBy: /the end by reuse of/,
  },
  {
    name: 'sends-accepted-twice',
    file: 'hub/numbered-sends.ts',
    edits: [{ find: '    this.accepted = state.accepted\n', put: '    this.accepted = 0\n' }],
    shownBy: /neither acknowledged nor refused/,
  },
]

/** Applies the bug of this name to its file, in memory and for this process. Returns the pattern of the violation. */
export function applyVariant(name: string): RegExp {
  const variant = BROKEN_VARIANTS.find(each => each.name === name)
  if (!variant)
    throw new Error(
      `no variant is named ${name}; there are ${BROKEN_VARIANTS.map(each => each.name).join(', ')}`,
    )
  process.env.KEYWAY_MUTANT = JSON.stringify(changeOf(variant))
  createRequire(import.meta.url)(join(ROOT, 'tools/mutants/hook.cjs'))
  return variant.shownBy
}

/**
 * Returns the file of a bug, and the places in it that change. @throws Error unless each of them occurs exactly once
 */
export function changeOf(variant: BrokenVariant): {
  file: string
  edits: { start: number; end: number; text: string }[]
} {
  const file = join(ROOT, 'packages/server/src', variant.file)
  const source = readFileSync(file, 'utf8')
  const edits = variant.edits.map(({ find, put }) => {
    const start = source.indexOf(find)
    if (source.split(find).length !== 2) throw new Error(`${variant.file} has not once: ${find}`)
    return { start, end: start + find.length, text: put }
  })
  return { file, edits: edits.sort((left, right) => left.start - right.start) }
}
