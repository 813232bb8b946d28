import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from '@keyway/sdk'
import type { Operation } from '../faults/history.ts'
import { operate, type Session, type SimulatedUser, signIn } from '../faults/simulated-users.ts'
import type { World } from '../faults/world.ts'
import type { CallResult } from '../support/nodes.ts'
import { Random } from '../support/random.ts'
import type { Facts, KeyFact } from './facts.ts'

const PAUSE_MS = 40
const RETRY_MS = 100
/** In millionths of a dollar: so small that the credit of a new account lasts for the whole run. */
const MAX_CHARGE = 100

/** A person with a session, keys, charges, and an agent on each node. */
export interface Person extends SimulatedUser {
  session: Session
  agents: Agent[]
}

export interface Load {
  people: readonly Person[]
  areConnected(): boolean
  /** The number of agents that lost their connection since the last call. */
  lostSinceLast(): number
  /** Stops the people; resolves when each has an answer to its last request. */
  stop(): Promise<void>
}

/** Starts people who create, use and revoke keys and are charged; `facts` records what was acknowledged to them. */
export async function startLoad(
  world: World,
  facts: Facts,
  { people: count, appSecret, seed }: { people: number; appSecret: string; seed: number },
): Promise<Load> {
  let isOver = false
  const disconnectedAgents = new Set<Agent>()
  const appCredentials = { authorization: `Basic ${btoa(`console:${appSecret}`)}` }
  const people: Person[] = []
  for (let n = 0; n < count; n++) people.push(await openPerson(n))
  while (!areConnected()) await wait(50)
  const activities = people.map(act)
  return {
    people,
    areConnected,
    lostSinceLast() {
      const count = disconnectedAgents.size
      disconnectedAgents.clear()
      return count
    },
    async stop() {
      isOver = true
      await Promise.all(activities)
    },
  }

  async function openPerson(n: number): Promise<Person> {
    const { target, history } = world
    const random = new Random(seed * 77 + n)
    const user: SimulatedUser = {
      target,
      history,
      random,
      email: `failover${n}@example.com`,
      isOver: () => isOver,
    }
    const session = await signIn(user)
    if (!session) throw new Error('nobody could sign in before the first failover')
    const person: Person = { ...user, session, agents: [] }
    facts.charged.set(session.userId, 0)
    const key = await createKey(person)
    for (const url of world.origins) person.agents.push(connect(url, key!))
    return person
  }

  function connect(url: string, { id, key: apiKey }: KeyFact): Agent {
    const agent = new Agent({ url, apiKey })
    agent.on('disconnected', () => disconnectedAgents.add(agent))
    agent.on('stopped', ({ error }) => {
      if (error) world.history.violations.push(`the agent of key ${id} stopped: ${error.message}`)
    })
    return agent
  }

  function areConnected(): boolean {
    return people.every(({ agents }) => agents.every(agent => agent.connected))
  }

  async function act(person: Person): Promise<void> {
    // The person's keys except the first, which its agents use.
    const revocableKeys: KeyFact[] = []
    while (!isOver) {
      await wait(PAUSE_MS)
      const choice = person.random.below(10)
      const key = revocableKeys.length > 0 ? person.random.pick(revocableKeys) : null
      if (choice < 3 || !key) {
        const createdKey = await createKey(person)
        if (createdKey) revocableKeys.push(createdKey)
      } else if (choice < 5) await charge(person)
      else if (choice < 7 && key.state === 'active') await revoke(person, key)
      else await exchange(person, key)
    }
  }

  async function createKey(person: Person): Promise<KeyFact | null> {
    const { userId, accessToken: token } = person.session
    const answer = await operate(person, 'create', userId, 'POST', '/v1/api-keys', { token, body: {} })
    if (answer?.status !== 201) return null
    const key: KeyFact = { id: answer.body.id, key: answer.body.key, state: 'active' }
    facts.keys.set(key.id, key)
    world.history.secrets.add(key.key)
    return key
  }

  async function revoke(person: Person, key: KeyFact): Promise<void> {
    const { accessToken: token } = person.session
    key.state = 'ending'
    const answer = await untilAnswered(() =>
      operate(person, 'revoke', key.id, 'DELETE', `/v1/api-keys/${key.id}`, { token }),
    )
    if (answer && answer.status < 300) key.state = 'revoked'
  }

  /** Charges with one Idempotency-Key for all attempts: however often the charge is sent, it is made once. */
  async function charge(person: Person): Promise<void> {
    const { userId } = person.session
    const micros = 1 + person.random.below(MAX_CHARGE)
    const headers = {
      ...appCredentials,
      'Idempotency-Key': `charge-${person.random.below(2 ** 31)}-${facts.keys.size}`,
    }
    const body = { user_id: userId, amount: (micros / 1e6).toFixed(6), description: 'failover' }
    const answer = await untilAnswered(() =>
      operate(person, 'charge', userId, 'POST', '/v1/charges', { body, headers }),
    )
    if (answer?.status === 201) facts.charged.set(userId, facts.charged.get(userId)! + micros)
    else world.history.violations.push(`a charge was answered ${answer?.status} ${answer?.body?.code}`)
  }
}

export async function exchange(person: SimulatedUser, { id, key }: KeyFact): Promise<CallResult | null> {
  const body = { api_key: key }
  const answer = await operate(person, 'exchange', id, 'POST', '/auth/agent-token', { body })
  if (answer?.status === 200) person.history.secrets.add(answer.body.token)
  return answer
}

/** Repeats a request until it is answered, also after the end of the load; null after a minute without an answer. */
export async function untilAnswered(
  sendRequest: () => Promise<CallResult | null>,
): Promise<CallResult | null> {
  for (const startedAt = performance.now(); performance.now() - startedAt < 60_000; ) {
    const answer = await sendRequest()
    if (answer) return answer
    await wait(RETRY_MS)
  }
  return null
}

/** The times of successful answers, for reads and for writes. */
export function successes(operations: readonly Operation[]): { reads: number[]; writes: number[] } {
  const successfulOperations = operations.filter(({ outcome }) => outcome === 'ok')
  const endTimes = (names: readonly string[]) =>
    successfulOperations.filter(({ op }) => names.includes(op)).map(({ end }) => end)
  return { reads: endTimes(['exchange', 'me']), writes: endTimes(['create', 'revoke', 'charge']) }
}
