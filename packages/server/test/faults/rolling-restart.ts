import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from '@keyway/sdk'
import { type CallResult, call, createKey, exchange, quantile, verifyLink } from '../support/nodes.ts'
import { startBalancer } from './balancer.ts'
import { type ScenarioResult, type World, withWorld } from './world.ts'

const REQUESTS_PER_SECOND = 200
const MESSAGE_INTERVAL_MS = 50

/**
 * Restarts two nodes behind a balancer one after the other under load. A client that retries once must see no failure,
 * and an SDK agent must always be reachable: each message is sent to it at once, or held while its connection moves,
 * and arrives once and in order.
 */
export async function rollingRestart(seed: number, scale: number): Promise<ScenarioResult> {
  return withWorld(seed, { engine: 'postgres', nodes: 2, people: 2 }, world =>
    world.underLoad(async () => {
      const balancer = await startBalancer(world.origins)
      try {
        await restartUnderLoad(world, balancer.origin, Math.max(1, Math.round(2 * scale)))
      } finally {
        await balancer.close()
      }
    }),
  )
}

async function restartUnderLoad(world: World, origin: string, rounds: number): Promise<void> {
  const email = 'rolling@example.com'
  await call(origin, 'POST', '/auth/send-magic-link', { body: { email } })
  const session = (await verifyLink(origin, email, (await world.target.mail(email, 10_000))!)).body
  const key = (await createKey(origin, session.access_token)).body
  const agent = new Agent({ url: origin, apiKey: key.key })
  const received: unknown[] = []
  agent.on('message', ({ data }) => received.push(data))
  await new Promise<void>(resolve => agent.once('ready', () => resolve()))

  let areRestartsOver = false
  const failedRequests: string[] = []
  const undeliveredAnswers: string[] = []
  const acceptedNumbers: number[] = []
  const durationsMs: number[] = []
  let retryCount = 0
  const sendRequest = (n: number): Promise<CallResult> =>
    n % 2 === 0
      ? exchange(origin, key.key)
      : call(origin, 'GET', '/v1/me', { token: session.access_token }, 5_000)
  const sendWithRetry = async (n: number) => {
    const startedAt = performance.now()
    const isSuccess = (answer: CallResult | null) => answer !== null && answer.status === 200
    let answer = await sendRequest(n).catch(() => null)
    if (!isSuccess(answer)) {
      retryCount++
      answer = await sendRequest(n).catch(() => null)
    }
    if (!isSuccess(answer)) failedRequests.push(`a request failed twice (${answer?.status ?? 'no answer'})`)
    durationsMs.push(performance.now() - startedAt)
  }
  const requestLoop = (async () => {
    const requests: Promise<void>[] = []
    const startedAt = performance.now()
    for (let n = 0; !areRestartsOver; n++) {
      requests.push(sendWithRetry(n))
      await wait(Math.max(0, startedAt + ((n + 1) * 1000) / REQUESTS_PER_SECOND - performance.now()))
    }
    await Promise.all(requests)
  })()
  const messageLoop = (async () => {
    let sentCount = 0
    while (!areRestartsOver) {
      const sendMessage = () =>
        call(origin, 'POST', `/v1/agents/${key.id}/messages`, {
          token: session.access_token,
          body: { data: ++sentCount },
        }).catch(() => null)
      let answer = await sendMessage()
      if (!answer || answer.status >= 500) answer = await sendMessage()
      if (answer?.status === 200 && answer.body.delivered + answer.body.held > 0)
        acceptedNumbers.push(sentCount)
      else undeliveredAnswers.push(JSON.stringify(answer?.body))
      await wait(MESSAGE_INTERVAL_MS)
    }
  })()

  for (let round = 0; round < rounds; round++) {
    for (const node of [0, 1]) {
      await wait(1500)
      const status = await world.processes[node]!.end('SIGTERM')
      if (status !== 0) world.history.violations.push(`a node ended with ${status} instead of 0`)
      world.faults++
      await world.startNode(node)
    }
  }
  await wait(1500)
  areRestartsOver = true
  await Promise.all([requestLoop, messageLoop])
  const arrivedMessages = () => received.filter(n => acceptedNumbers.includes(n as number))
  for (let waited = 0; waited < 5000 && arrivedMessages().length < acceptedNumbers.length; waited += 100)
    await wait(100)
  agent.close()
  if (arrivedMessages().join() !== acceptedNumbers.join())
    world.history.violations.push(
      `of ${acceptedNumbers.length} messages to the agent, these arrived: ${arrivedMessages()}`,
    )
  world.history.violations.push(...new Set(failedRequests))
  if (undeliveredAnswers.length > 0)
    world.history.violations.push(
      `${undeliveredAnswers.length} messages found the agent unreachable: ${undeliveredAnswers[0]}`,
    )
  world.notes.push(
    `${durationsMs.length} requests, ${retryCount} retried, p50 ${quantile(durationsMs, 0.5).toFixed(1)} ms, p99 ${quantile(durationsMs, 0.99).toFixed(1)} ms`,
  )
}
