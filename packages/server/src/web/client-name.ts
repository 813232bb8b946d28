import { browserOf } from '../languages/client-name.ts'
import { texts } from '../languages/current.ts'

const MAX_NAME_LENGTH = 60

/** The User-Agent that `fetch` of Node.js sends if the program sets none. */
const NODE_USER_AGENT = 'node'

/** A name of a client such as `Firefox on Linux` or `Node.js`; for other programs, the start of their User-Agent. */
export function describeClient(client: string): string {
  if (client === NODE_USER_AGENT) return 'Node.js'
  const browser = browserOf(client, texts.units)
  return browser ?? (client.length > MAX_NAME_LENGTH ? `${client.slice(0, MAX_NAME_LENGTH - 1)}…` : client)
}

/** Like `describeClient`; if the client sent no User-Agent, a text that says so. */
export function programOf(client: string | null): string {
  return client ? describeClient(client) : texts.agents.unknownClient
}
