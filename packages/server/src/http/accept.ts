import type { IncomingMessage } from 'node:http'

/** Whether a browser asks for something to show. */
export function wantsPage({ headers }: IncomingMessage): boolean {
  return headers.accept?.includes('text/html') ?? false
}
