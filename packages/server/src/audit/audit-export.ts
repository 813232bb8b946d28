import type { AuditEvent } from './audit-event.ts'

/** Rows per statement, and between two checks of the credential. */
const BATCH = 500

export interface AuditExport {
  read(after: number, limit: number): Promise<AuditEvent[]>
  /** Rejects once the credential may no longer read. */
  reauthenticate(): Promise<unknown>
  head: string
  toLine(event: AuditEvent): string
}

/** All rows as a stream, read as fast as the client takes them; breaks off if the caller loses the right to read. */
export function auditExport({ read, reauthenticate, head, toLine }: AuditExport): ReadableStream {
  const encoder = new TextEncoder()
  let last = 0
  let isFirst = true
  return new ReadableStream(
    {
      async pull(controller) {
        if (!isFirst) await reauthenticate()
        const rows = await read(last, BATCH)
        const text = (isFirst ? head : '') + rows.map(toLine).join('')
        isFirst = false
        if (text) controller.enqueue(encoder.encode(text))
        last = rows.at(-1)?.sequence ?? last
        if (rows.length < BATCH) controller.close()
      },
    },
    { highWaterMark: 1 },
  )
}
