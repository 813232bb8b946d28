import type { SecurityEventObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../clock.ts'
import { csvCell } from '../csv.ts'
import type { Position, Slice } from '../paging.ts'
import type { SecurityEvent } from './security-event.ts'

export function securityEventObject(event: SecurityEvent): SecurityEventObject {
  return {
    id: event.id,
    type: event.type,
    at: toRfc3339(event.at),
    network: event.network,
    client: event.client,
    ...(event.keyId && { key_id: event.keyId }),
    ...(event.sessionId && { session_id: event.sessionId }),
  }
}

const COLUMNS = ['id', 'at', 'type', 'network', 'client', 'key_id', 'session_id'] as const

export const SECURITY_EVENT_FORMATS = {
  csv: {
    type: 'text/csv; charset=utf-8; header=present',
    head: `${COLUMNS.join(',')}\r\n`,
    toLine(event: SecurityEvent) {
      const object: Partial<Record<(typeof COLUMNS)[number], string | null>> = securityEventObject(event)
      return `${COLUMNS.map(name => csvCell(object[name])).join(',')}\r\n`
    },
  },
  jsonl: {
    type: 'application/x-ndjson',
    head: '',
    toLine: (event: SecurityEvent) => `${JSON.stringify(securityEventObject(event))}\n`,
  },
} as const

/** Rows per query. The credential of the request is checked again before each query but the first. */
export const EXPORT_BATCH = 500

/**
 * All events as a stream, newest first, read as fast as the client takes them; breaks off if the caller loses the right
 * to read.
 */
export function securityEventExport(
  format: keyof typeof SECURITY_EVENT_FORMATS,
  read: (after: Position | null) => Promise<Slice<SecurityEvent>>,
  reauthenticate: () => Promise<unknown>,
): ReadableStream {
  const { head, toLine } = SECURITY_EVENT_FORMATS[format]
  const encoder = new TextEncoder()
  let after: Position | null = null
  let isFirst = true
  return new ReadableStream(
    {
      async pull(controller) {
        if (!isFirst) await reauthenticate()
        const { rows, next }: Slice<SecurityEvent> = await read(after)
        // Enqueued even if it is empty: after a pull that enqueues nothing, the stream would not be pulled again.
        controller.enqueue(encoder.encode((isFirst ? head : '') + rows.map(toLine).join('')))
        isFirst = false
        after = next
        if (!next) controller.close()
      },
    },
    { highWaterMark: 1 },
  )
}
