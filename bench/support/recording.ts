import pg from 'pg'
import type { DatabaseStorage } from '../../packages/server/src/storage/database.ts'

export interface RecordedStatement {
  text: string
  values: unknown[]
}

/** Records all statements sent to PostgreSQL during `work`, including BEGIN and COMMIT. */
export async function recordPostgres(work: () => Promise<unknown>): Promise<RecordedStatement[]> {
  const statements: RecordedStatement[] = []
  const prototype = pg.Client.prototype as unknown as { query(...args: unknown[]): unknown }
  const { query } = prototype
  prototype.query = function (...args: unknown[]) {
    const [first, second] = args
    const config = (typeof first === 'string' ? { text: first } : first) as {
      text: string
      values?: unknown[]
    }
    const values = config.values ?? (Array.isArray(second) ? second : [])
    if (belongsToCall(config.text)) statements.push({ text: config.text, values })
    return query.apply(this, args)
  }
  try {
    await work()
  } finally {
    prototype.query = query
  }
  return statements
}

/** Whether the statement belongs to the recorded call: excludes LISTEN and SET, with which nodes set up connections. */
function belongsToCall(text: string): boolean {
  return !/^\s*(listen|set)\b/i.test(text)
}

/** Records the statements of all transactions on SQLite during `work`, without BEGIN and COMMIT. */
export async function recordSqlite(
  storage: DatabaseStorage,
  work: () => Promise<unknown>,
): Promise<RecordedStatement[]> {
  const statements: RecordedStatement[] = []
  const { engine } = storage
  const { transaction } = engine
  engine.transaction = (run, landed) =>
    transaction(
      tx =>
        run({
          ...tx,
          execute(text, values) {
            statements.push({ text, values: [...values] })
            return tx.execute(text, values)
          },
        }),
      landed,
    )
  try {
    await work()
  } finally {
    engine.transaction = transaction
  }
  return statements
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

/**
 * Turns recorded statements into templates, and returns a function that makes the statements of any user from them.
 * Users have numbers: the statements were recorded with user `recordedNumber`, and are made for user `n`.
 *
 * - In addresses, in ids that end with the recorded number, and in the hash of the token, `n` replaces that number.
 * - Other ids and strings of 43 characters (hashes and secrets), which were random, become placeholders: the number of
 *   the value in order of first appearance, and `n`. So equal values stay equal, and those of two users differ.
 */
export function createReplayer(
  recordedStatements: readonly RecordedStatement[],
  recordedNumber: number,
  tokenHash: (n: number) => string,
) {
  const suffix = recordedNumber.toString(16).padStart(12, '0')
  const numberByValue = new Map<string, number>()
  const recordedTokenHash = tokenHash(recordedNumber)
  const templateOf = (value: unknown): ((n: number) => unknown) => {
    if (Array.isArray(value)) {
      const parts = value.map(templateOf)
      return n => parts.map(part => part(n))
    }
    if (typeof value !== 'string') return () => value
    if (value === recordedTokenHash) return tokenHash
    if (value.length === 43) {
      const valueNumber = numberOf(numberByValue, value)
      return n => `${valueNumber}-${n}`.padEnd(43, 'x')
    }
    if (value.length > 200) return () => value
    const pieces = value.split(new RegExp(`(${UUID.source}|p${recordedNumber}@)`))
    const renderers = pieces.map(piece => {
      if (piece === `p${recordedNumber}@`) return (n: number) => `p${n}@`
      if (!piece.match(UUID)) return () => piece
      if (piece.endsWith(suffix)) return (n: number) => piece.slice(0, -12) + n.toString(16).padStart(12, '0')
      const valueNumber = numberOf(numberByValue, piece).toString(16).padStart(4, '0')
      return (n: number) => `0198c9f3-${valueNumber}-7000-8000-${n.toString(16).padStart(12, '0')}`
    })
    return n => renderers.map(render => render(n)).join('')
  }
  const templates = recordedStatements.map(({ text, values }) => ({ text, values: values.map(templateOf) }))
  return (n: number): RecordedStatement[] =>
    templates.map(({ text, values }) => ({ text, values: values.map(render => render(n)) }))
}

function numberOf(numberByValue: Map<string, number>, value: string): number {
  if (!numberByValue.has(value)) numberByValue.set(value, numberByValue.size + 1)
  return numberByValue.get(value)!
}
