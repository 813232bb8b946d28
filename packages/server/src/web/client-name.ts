import { browserOf } from '../languages/client-name.ts'
import { texts } from '../languages/current.ts'

const MAX_LENGTH = 60

/** The User-Agent of requests that Node.js makes without one of their own. */
const NODE = 'node'

/** A short name of a client such as `Firefox on Linux`; for other programs, their own User-Agent. */
export function describeClient(client: string): string {
  if (client === NODE) return 'Node.js'
  const browser = browserOf(client, texts.units)
  return browser ?? (client.length > MAX_LENGTH ? `${client.slice(0, MAX_LENGTH - 1)}…` : client)
}

/** As `describeClient`, also for a connection whose client did not name itself. */
export function programOf(client: string | null): string {
  return client ? describeClient(client) : texts.agents.unknownClient
}
