import type { IncomingMessage } from 'node:http'

/** Whether the client prefers HTML. */
export function wantsPage({ headers }: IncomingMessage): boolean {
  return headers.accept?.includes('text/html') ?? false
}
