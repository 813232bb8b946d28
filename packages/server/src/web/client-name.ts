import { browserOf } from '../languages/client-name.ts'
import { texts } from '../languages/current.ts'

const MAX_NAME_LENGTH = 60

/** The User-Agent that `fetch` of Node.js sends if the program sets none. */
const NODE_USER_AGENT = 'node'

/** A short name of a client such as `Firefox on Linux`; for other programs, their own User-Agent. */
export function describeClient(client: string): string {
  if (client === NODE_USER_AGENT) return 'Node.js'
  const browser = browserOf(client, texts.units)
  return browser ?? (client.length > MAX_NAME_LENGTH ? `${client.slice(0, MAX_NAME_LENGTH - 1)}…` : client)
}

/** Like `describeClient`, also for a connection whose client did not name itself. */
export function programOf(client: string | null): string {
  return client ? describeClient(client) : texts.agents.unknownClient
}
