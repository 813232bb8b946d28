import type { AuditEvent } from './audit-event.ts'

/** Rows per statement; the caller's credential is checked again before each further statement. */
const BATCH = 500

export interface AuditExport {
  read(after: number, limit: number): Promise<AuditEvent[]>
  /** Rejects once the caller may no longer read the audit. */
  reauthenticate(): Promise<unknown>
  /** The text before the first row, such as the header of CSV. */
  head: string
  toLine(event: AuditEvent): string
}

/** All rows as a stream, read as fast as the client takes them; breaks off if the caller loses the right to read. */
export function auditExport({ read, reauthenticate, head, toLine }: AuditExport): ReadableStream {
  const encoder = new TextEncoder()
  let lastSequence = 0
  let isFirst = true
  return new ReadableStream(
    {
      async pull(controller) {
        if (!isFirst) await reauthenticate()
        const rows = await read(lastSequence, BATCH)
        const text = (isFirst ? head : '') + rows.map(toLine).join('')
        isFirst = false
        if (text) controller.enqueue(encoder.encode(text))
        lastSequence = rows.at(-1)?.sequence ?? lastSequence
        if (rows.length < BATCH) controller.close()
      },
    },
    { highWaterMark: 1 },
  )
}
