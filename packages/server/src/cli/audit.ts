import type { AuditEvent } from '../audit/audit-event.ts'
import { AUDIT_CSV_HEADER, auditCsvLine, auditEventObject } from '../audit/audit-object.ts'
import { parseRfc3339 } from '../clock.ts'
import { OperatorError } from '../operator-error.ts'
import type { Command, CommandContext } from './command.ts'

const BATCH_ROWS = 500

export const commands: Command[] = [
  {
    name: 'audit',
    args: [],
    options: {
      from: { value: 'INSTANT', meaning: 'from then on, for example 2026-11-01T00:00:00Z' },
      to: { value: 'INSTANT', meaning: 'before then' },
      csv: { meaning: 'as CSV instead of one JSON object a line' },
    },
    summary: 'Export what administrators did.',
    help: `One JSON object a line, oldest first, or CSV with --csv, on standard output. Each row has the hash of the one before:
"keyway doctor" checks the chain. Kept as long as KEYWAY_AUDIT_DAYS says.`,
    async run(context) {
      const { storage } = await context.services()
      const filter = { from: instantOf(context, 'from'), to: instantOf(context, 'to') }
      const toLine = context.options.csv ? auditCsvLine : jsonLine
      if (context.options.csv) write(AUDIT_CSV_HEADER)
      let lastSequence = 0
      for (;;) {
        const rows = await storage.store.audit.after(lastSequence, filter, BATCH_ROWS)
        write(rows.map(toLine).join(''))
        if (rows.length < BATCH_ROWS) return 0
        lastSequence = rows.at(-1)!.sequence
      }

      function write(text: string): void {
        if (text) context.printLines(text.replace(/\r?\n$/, ''))
      }
    },
  },
]

function jsonLine(event: AuditEvent): string {
  return `${JSON.stringify(auditEventObject(event))}\n`
}

function instantOf({ options }: CommandContext, name: 'from' | 'to'): number | undefined {
  const text = options[name]
  if (typeof text !== 'string') return undefined
  const instant = parseRfc3339(text)
  if (instant === null)
    throw new OperatorError(`--${name} must be an RFC 3339 instant, for example 2026-11-01T00:00:00Z.`)
  return instant
}
