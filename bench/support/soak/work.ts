import { Agent, Keyway, memoryTokenStore, type TokenStore } from '@keyway/sdk'
import type { Mailbox } from './mailbox.ts'
import type { Recorder } from './recorder.ts'
import { ADMINISTRATOR, APP, type SoakService } from './service.ts'

/** Number of people; each has a session, a key and two connected agents. */
const PEOPLE = 20
const REQUEST_TIMEOUT_MS = 15_000
const READY_TIMEOUT_MS = 30_000

interface SignedInUser {
  client: Keyway
  tokens: TokenStore
  userId: string
}

interface Person extends SignedInUser {
  key: string
  /** Sends requests to `responder`, which is on another node if there are several. */
  requester: Agent
  responder: Agent
  /** Requests that `responder` has not answered yet. */
  requests: Set<Promise<unknown>>
}

export interface SoakWork {
  /** Operations a second. */
  readonly perSecond: Readonly<Record<string, number>>
  /** Runs the n-th operation of this name. */
  run(operation: string, n: number): Promise<unknown>
  close(): void
}

/** Signs people in, connects their agents, and returns the operations: a mix of all uses of the service. */
export async function startWork(
  { origins, appSecret }: SoakService,
  mailbox: Mailbox,
  recorder: Recorder,
): Promise<SoakWork> {
  let isClosing = false
  let newcomerCount = 0
  const app = new Keyway({ url: origins[0]!, app: { id: APP, secret: appSecret }, maxRetries: 0 })
  const administrator = await signIn(ADMINISTRATOR, 0)
  const people: Person[] = []
  for (let n = 0; n < PEOPLE; n++) people.push(await createPerson(`person${n}@example.com`, n))
  const personAt = (n: number) => people[n % people.length]!

  const operations: Record<string, { perSecond: number; run(n: number): Promise<unknown> }> = {
    exchange: { perSecond: 60, run: n => exchange(n, personAt(n).key) },
    introspection: { perSecond: 10, run: n => app.apps.introspect(personAt(n).key) },
    request: { perSecond: 10, run: sendRequest },
    account: { perSecond: 5, run: n => personAt(n).client.account.get() },
    keys: { perSecond: 3, run: n => personAt(n).client.apiKeys.list() },
    charge: {
      perSecond: 2,
      run: n => app.apps.charge({ user_id: personAt(n).userId, amount: '0.000001', description: 'soak' }),
    },
    refresh: { perSecond: 2, run: n => personAt(n).client.refresh() },
    page: { perSecond: 1, run: n => fetchPage(n, n % 2 === 0 ? '/sign-in' : '/docs') },
    'sign-in': { perSecond: 0.5, run: n => signIn(`person${n % PEOPLE}@example.com`, n) },
    'sign-up': { perSecond: 0.5, run: n => signIn(`newcomer${newcomerCount++}@example.com`, n) },
    administration: { perSecond: 0.5, run: readLists },
    'key made and revoked': { perSecond: 0.2, run: createAndRevoke },
    'agent reconnects': { perSecond: 0.2, run: replaceAgent },
  }
  return {
    perSecond: Object.fromEntries(
      Object.entries(operations).map(([name, { perSecond }]) => [name, perSecond]),
    ),
    run: (operation, n) => operations[operation]!.run(n),
    close() {
      isClosing = true
      for (const { requester, responder } of people) for (const agent of [requester, responder]) agent.close()
    },
  }

  function originOf(n: number): string {
    return origins[n % origins.length]!
  }

  async function signIn(address: string, n: number): Promise<SignedInUser> {
    const tokens = memoryTokenStore()
    const client = new Keyway({ url: originOf(n), tokens, maxRetries: 0 })
    const [token] = await Promise.all([mailbox.token(address), client.sendMagicLink({ email: address })])
    const { user } = await client.verifyMagicLink({ email: address, token })
    return { client, tokens, userId: user.id }
  }

  async function createPerson(address: string, n: number): Promise<Person> {
    const person = await signIn(address, n)
    const { key } = await person.client.apiKeys.create({ name: 'soak' })
    const [requester, responder] = [await connect(key, n), await connect(key, n + 1)]
    return { ...person, key, requester, responder, requests: new Set() }
  }

  async function connect(apiKey: string, n: number): Promise<Agent> {
    const agent = new Agent({ url: originOf(n), apiKey })
    agent.onRequest(({ data }) => data)
    agent.on('disconnected', ({ code, reason, willReconnect }) => {
      if (willReconnect && !isClosing) recorder.recordFailure('connection', `closed with ${code} ${reason}`)
    })
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the agent did not connect')), READY_TIMEOUT_MS)
      agent.once('ready', () => {
        clearTimeout(timer)
        resolve()
      })
    })
    return agent
  }

  function sendRequest(n: number): Promise<unknown> {
    const { requester, responder, requests } = personAt(n)
    const connectionId = responder.connection!.connectionId
    const request = requester.request(connectionId, { n }, { timeout: REQUEST_TIMEOUT_MS })
    requests.add(request)
    return request.finally(() => requests.delete(request))
  }

  /** Requests lists of people, audit rows and statistics, in turn. */
  async function readLists(n: number): Promise<void> {
    await administrator.client.account.get()
    const { access } = (await administrator.tokens.get())!
    const path = ['/v1/admin/users?limit=50', '/v1/admin/audit-events', '/v1/admin/statistics'][n % 3]
    const answer = await fetch(originOf(n) + path, { headers: { authorization: `Bearer ${access}` } })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${text.slice(0, 200)}`)
  }

  async function exchange(n: number, api_key: string): Promise<void> {
    const answer = await fetch(`${originOf(n)}/auth/agent-token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key }),
    })
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`${answer.status} ${text.slice(0, 200)}`)
  }

  async function fetchPage(n: number, path: string): Promise<void> {
    const answer = await fetch(originOf(n) + path)
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`)
  }

  async function createAndRevoke(n: number): Promise<void> {
    const { client } = personAt(n)
    const { id, key } = await client.apiKeys.create({ name: 'for a moment' })
    await exchange(n, key)
    await client.apiKeys.revoke(id)
    const isRefused = await exchange(n + 1, key).then(
      () => false,
      error => String(error).includes('api_key_revoked'),
    )
    if (!isRefused) throw new Error('a revoked key was not refused')
  }

  /** Replaces an agent by a new one. The old one is closed once it has answered the requests that were sent to it. */
  async function replaceAgent(n: number): Promise<void> {
    const person = personAt(n)
    const { responder: formerAgent, requests } = person
    // On another node than the requester, if there are several.
    person.responder = await connect(person.key, n + 1)
    person.requests = new Set()
    await Promise.allSettled(requests)
    formerAgent.close()
  }
}
