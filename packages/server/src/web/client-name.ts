import { browserOf } from '../languages/client-name.ts'
import { texts } from '../languages/current.ts'

const MAX_LENGTH = 60

/** A short name of a client such as `Firefox on Linux`; for other programs, their own User-Agent. */
export function describeClient(client: string): string {
  const browser = browserOf(client, texts.units)
  return browser ?? (client.length > MAX_LENGTH ? `${client.slice(0, MAX_LENGTH - 1)}…` : client)
}
