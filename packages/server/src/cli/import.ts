import { createReadStream } from 'node:fs'
import type { z } from 'zod'
import { KeywayError } from '../errors.ts'
import { importedKey, importedUser, keyToImport, userToImport } from '../http/import-objects.ts'
import { validate } from '../http/validation.ts'
import { LineTooLong, wholeLines } from '../lines.ts'
import { OperatorError } from '../operator-error.ts'
import { printProgress } from './backup-services.ts'
import { byOperator, REASON } from './by-operator.ts'
import type { Command, CommandContext } from './command.ts'

/** Rows per transaction. */
const BATCH_ROWS = 500
const MAX_LINE_LENGTH = 16 * 1024

const FILE_HELP = `FILE has one JSON object a line; "-" is standard input. Each ${BATCH_ROWS} lines are one transaction, of which all
or none are imported; what was imported before an error stays, and running the command again skips it.`

export const commands: Command[] = [
  {
    name: 'keys import',
    args: ['FILE'],
    options: { reason: REASON },
    summary: 'Import API keys of another system by their hashes.',
    help: `${FILE_HELP}
A line has user_id or email (of an account), sha256 (of the whole key, 64 hexadecimal digits), prefix (its first
characters, at most 12), scopes ([] means all permissions), and where known name, expires_at, external_id. The keys are
then accepted as those of this service are, until they are revoked. Policies and limits bind them as they bind new keys.
Do not import keys of less than 128 random bits: who reads the hashes could guess them. Example:
  {"email":"ada@example.com","sha256":"9f86…0a08","prefix":"sk_live_4eC3","scopes":["agent:connect"]}`,
    async run(context) {
      const { apiKeys } = await context.services()
      const by = byOperator(context.options.reason)
      return importFile(context, 'keys', importedKey, rows => apiKeys.importKeys(rows.map(keyToImport), by))
    },
  },
  {
    name: 'users import',
    args: ['FILE'],
    options: { reason: REASON },
    summary: 'Import people of another system.',
    help: `${FILE_HELP}
A line has email, and where known name and external_id. Accounts have no credit, plan or mail before the first sign-in to
the address, which brings them once. Addresses that have an account are skipped. Example:
  {"email":"ada@example.com","name":"Ada","external_id":"customer-42"}`,
    async run(context) {
      const { users } = await context.services()
      const by = byOperator(context.options.reason)
      return importFile(context, 'users', importedUser, rows => users.importUsers(rows.map(userToImport), by))
    },
  },
]

interface Line<Row> {
  number: number
  row: Row
}

/** Imports the file in batches. @throws OperatorError with the number of the line that is refused */
async function importFile<Schema extends z.ZodType>(
  context: CommandContext,
  noun: 'keys' | 'users',
  schema: Schema,
  importRows: (rows: z.output<Schema>[]) => Promise<{ isNew: boolean }[]>,
): Promise<number> {
  const progress = printProgress('lines')
  const counts = { imported: 0, skipped: 0 }
  let batch: Line<z.output<Schema>>[] = []
  for await (const line of rowsOf(context.args[0]!, schema, counts)) {
    batch.push(line)
    if (batch.length === BATCH_ROWS) await flush()
  }
  await flush()
  context.print(
    counts,
    `Imported ${counts.imported} ${noun}, skipped ${counts.skipped} that were there already.`,
  )
  return 0

  async function flush(): Promise<void> {
    if (batch.length === 0) return
    const lines = batch
    batch = []
    try {
      const rows = await importRows(lines.map(({ row }) => row))
      const createdCount = rows.filter(({ isNew }) => isNew).length
      counts.imported += createdCount
      counts.skipped += rows.length - createdCount
    } catch (error) {
      throw error instanceof KeywayError ? errorAtLine(error, lines, counts) : error
    }
    progress(lines.at(-1)!.number)
  }
}

async function* rowsOf<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  counts: { imported: number },
): AsyncGenerator<Line<z.output<Schema>>> {
  let number = 0
  try {
    for await (const text of linesOf(file)) {
      number++
      if (text.trim() === '') continue
      yield { number, row: parse(text, number, schema, counts) }
    }
  } catch (error) {
    if (error instanceof LineTooLong)
      throw new OperatorError(`A line after line ${number} has more than ${MAX_LINE_LENGTH} characters.`)
    if ((error as NodeJS.ErrnoException).syscall !== undefined)
      throw new OperatorError(`${file} cannot be read: ${(error as Error).message}`)
    throw error
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin : createReadStream(file)
  input.setEncoding('utf8')
  let lastLine = ''
  yield* wholeLines(input as AsyncIterable<string>, MAX_LINE_LENGTH, text => {
    lastLine = text
  })
  if (lastLine) yield lastLine
}

function parse<Schema extends z.ZodType>(
  text: string,
  number: number,
  schema: Schema,
  counts: { imported: number },
): z.output<Schema> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw lineError(number, 'is no JSON object', counts)
  }
  try {
    return validate(schema, value)
  } catch (error) {
    throw error instanceof KeywayError ? lineError(number, error.message, counts) : error
  }
}

/**
 * Replaces the index in the batch, such as 3 in `keys.3.email: …`, by the number of the line in the file. Returns an
 * error without an index unchanged.
 */
function errorAtLine(
  error: KeywayError,
  lines: readonly Line<unknown>[],
  counts: { imported: number },
): Error {
  const [, index, message] = /^(?:keys|users)\.(\d{1,4})[.:] ?(.*)$/s.exec(error.message) ?? []
  const line = index === undefined ? undefined : lines[Number(index)]
  return line ? lineError(line.number, message!, counts) : error
}

function lineError(number: number, reason: string, { imported }: { imported: number }): OperatorError {
  return new OperatorError(
    `Line ${number}: ${reason} (${imported} imported before; mend the line and run the command again)`,
  )
}
