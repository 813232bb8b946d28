import { randomBytes } from 'node:crypto'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { basicAuthorization } from '../support/http.ts'
import {
  type CallResult,
  call,
  connectHub,
  exchange,
  type PrintedLinks,
  refresh,
  SHARED_URL,
  signIn,
} from '../support/nodes.ts'

export interface BalancedNode {
  origin: string
  stop(): Promise<unknown>
}

export interface NodePair<Node extends BalancedNode> {
  /** The nodes that receive traffic; a node that is being stopped does not. */
  live(): Node[]
  /** Sends a request to the next node in turn that is not being stopped. */
  through<Answer>(request: (origin: string) => Promise<Answer>): Promise<Answer>
  /** For each node in turn: stops its traffic, waits for requests in progress, and restarts it with other secrets. */
  restartOneByOne(secrets: string): Promise<void>
}

/** Starts two nodes behind a simple load balancer. */
export async function startPair<Node extends BalancedNode>(
  start: (secrets: string) => Promise<Node>,
  secrets: string,
): Promise<NodePair<Node>> {
  const nodes: (Node | null)[] = [await start(secrets), await start(secrets)]
  const pendingRequestCounts = new Map<Node, number>()
  const liveNodes = () => nodes.filter(node => node !== null)
  let nextIndex = 0
  return {
    live: liveNodes,
    async through(request) {
      const node = liveNodes()[nextIndex++ % liveNodes().length]!
      pendingRequestCounts.set(node, (pendingRequestCounts.get(node) ?? 0) + 1)
      try {
        return await request(node.origin)
      } finally {
        pendingRequestCounts.set(node, pendingRequestCounts.get(node)! - 1)
      }
    },
    async restartOneByOne(newSecrets) {
      for (const index of nodes.keys()) {
        const stoppedNode = nodes[index]!
        nodes[index] = null
        while ((pendingRequestCounts.get(stoppedNode) ?? 0) > 0)
          await new Promise(resolve => setImmediate(resolve))
        await stoppedNode.stop()
        nodes[index] = await start(newSecrets)
      }
    },
  }
}

export interface Traffic {
  failures: string[]
  /** Number of answered calls by name. */
  counts: Record<string, number>
  /** The secret that the app uses from its next call on. */
  appSecret: { current: string }
  /** Number of agent tokens by their signer, `<origin> <kid>`, and the time of the first (`performance.now()`). */
  signers: Map<string, { tokens: number; since: number }>
  /** Resolves after this number of further answered calls; rejects if the traffic failed. */
  answered(calls: number): Promise<void>
  /** Stops the traffic, and waits for calls in progress. */
  stop(): Promise<void>
}

/**
 * Repeats every kind of call on any live node. Verifies each token as an app does, with the published keys, and caches
 * these as long as their response allows, even if a token names an unknown key.
 */
export function startTraffic(
  pair: NodePair<BalancedNode>,
  links: PrintedLinks,
  { people, appSecret: firstSecret }: { people: number; appSecret: string },
): Traffic {
  const failures: string[] = []
  const counts: Record<string, number> = {}
  const signers: Traffic['signers'] = new Map()
  const appSecret = { current: firstSecret }
  const verifyToken = createVerifier(pair)
  const targetChecks = new Set<() => void>()
  let isStopped = false
  let answeredTotal = 0
  const runningPeople = Promise.all(
    Array.from({ length: people }, (_, at) => actAsPerson(`person${at}@example.com`)),
  )
  runningPeople.catch(error => failures.push(String(error)))

  return {
    failures,
    counts,
    appSecret,
    signers,
    answered(calls) {
      const targetTotal = answeredTotal + calls
      const targetReached = new Promise<void>(resolve => {
        const check = () => {
          if (answeredTotal < targetTotal) return
          targetChecks.delete(check)
          resolve()
        }
        targetChecks.add(check)
      })
      return Promise.race([targetReached, runningPeople.then(() => {})])
    },
    async stop() {
      isStopped = true
      await runningPeople
    },
  }

  async function actAsPerson(email: string): Promise<void> {
    const firstSignIn = await pair.through(origin => signIn(origin, links, email))
    let { access_token: access, refresh_token: token } = firstSignIn
    const createdKey = await expect('create key', 201, origin =>
      call(origin, 'POST', '/v1/api-keys', { token: access, body: {} }),
    )
    for (let round = 0; !isStopped; round++) {
      const agent = await exchangeKey(createdKey.key)
      const nextTokens = await expect('refresh', 200, origin =>
        refresh(origin, token, randomBytes(12).toString('hex')),
      )
      ;({ access_token: access, refresh_token: token } = nextTokens)
      await expectValid('access token', access)
      await expect('me', 200, origin => call(origin, 'GET', '/v1/me', { token: access }))
      await visitHub(agent)
      const headers = basicAuthorization('shop', appSecret.current)
      for (const presented of [createdKey.key, access, agent]) {
        const answer = await expect('introspect', 200, origin =>
          call(origin, 'POST', '/auth/introspect', { body: { token: presented }, headers }),
        )
        if (answer.active !== true) failures.push('introspect: not active')
      }
      if (round % 5 === 0) await repeatSignIn(email, firstSignIn.user.id)
    }
  }

  async function exchangeKey(key: string): Promise<string> {
    let issuerOrigin = ''
    const { token } = await expect('exchange', 200, origin => {
      issuerOrigin = origin
      return exchange(origin, key)
    })
    await expectValid('agent token', token)
    const signer = `${issuerOrigin} ${decodeProtectedHeader(token).kid}`
    const earlierCount = signers.get(signer) ?? { tokens: 0, since: performance.now() }
    signers.set(signer, { ...earlierCount, tokens: earlierCount.tokens + 1 })
    return token
  }

  /** Connects two agents, sends a message from one to the other, and disconnects both. */
  async function visitHub(token: string): Promise<void> {
    await pair.through(async origin => {
      const [speaker, listener] = await Promise.all([connectHub(origin, token), connectHub(origin, token)])
      speaker.send({ type: 'send', id: '1', to: listener.id, data: 'hello' })
      const acknowledgement = await speaker.next(frame => frame.type === 'sent' || frame.type === 'error')
      if (acknowledgement.delivered === 1) await listener.next(frame => frame.type === 'message')
      else failures.push(`hub: ${JSON.stringify(acknowledgement)}`)
      for (const agent of [speaker, listener]) agent.socket.close()
      await Promise.all([speaker.closed, listener.closed])
    })
    count('hub')
  }

  async function repeatSignIn(email: string, userId: string): Promise<void> {
    const secondSignIn = await pair.through(origin => signIn(origin, links, email))
    if (secondSignIn.user.id !== userId) failures.push('sign in: another user')
    count('sign in')
  }

  async function expect(
    name: string,
    status: number,
    request: (origin: string) => Promise<CallResult>,
  ): Promise<CallResult['body']> {
    const answer = await pair.through(request)
    count(name)
    if (answer.status !== status) failures.push(`${name}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async function expectValid(name: string, token: string): Promise<void> {
    await verifyToken(token).catch(error => failures.push(`${name}: ${error}`))
    count(`${name} verified`)
  }

  function count(name: string): void {
    counts[name] = (counts[name] ?? 0) + 1
    answeredTotal++
    for (const check of [...targetChecks]) check()
  }
}

function createVerifier(pair: NodePair<BalancedNode>): (token: string) => Promise<unknown> {
  let keySetPromise: Promise<{ keys: ReturnType<typeof createLocalJWKSet>; until: number }> | undefined
  return async token => {
    keySetPromise ??= fetchKeys()
    if ((await keySetPromise).until <= performance.now()) keySetPromise = fetchKeys()
    return jwtVerify(token, (await keySetPromise).keys, { issuer: SHARED_URL, algorithms: ['EdDSA'] })
  }

  function fetchKeys() {
    return pair.through(async origin => {
      const response = await fetch(`${origin}/.well-known/jwks.json`)
      const maxAge = Number(/max-age=(\d+)/.exec(response.headers.get('cache-control')!)![1])
      const keys = createLocalJWKSet((await response.json()) as JSONWebKeySet)
      return { keys, until: performance.now() + maxAge * 1000 }
    })
  }
}
