import { setTimeout as wait } from 'node:timers/promises'
import { type CallResult, call } from '../support/nodes.ts'
import { patienceMs } from '../support/patience.ts'
import { Random } from '../support/random.ts'
import type { History, OperationName } from './history.ts'

/** Access to the service under test, and to the mails that it sends. */
export interface Target {
  origins(): readonly string[]
  /** The token of the next unread mail to this address, or null if none arrives in time. */
  mail(email: string, timeoutMs: number): Promise<string | null>
}

/** A request without an answer within this time, on an idle machine, has the outcome `unknown`. */
const REQUEST_TIMEOUT_MS = 8_000
const MAIL_TIMEOUT_MS = 40_000
const RETRY_MS = 150

export interface Session {
  id: string
  userId: string
  accessToken: string
  refreshToken: string
}

export interface SimulatedUsers {
  /** Lets each simulated user finish the current step and the final checks, and resolves when all have ended. */
  stop(): Promise<void>
}

/** Simulates `people` users at a time until stopped. When one has finished, the next signs up with a new address. */
export function createSimulatedUsers(
  target: Target,
  history: History,
  people: number,
  seed: number,
): SimulatedUsers {
  let isStopped = false
  const simulations = Array.from({ length: people }, async (_, n) => {
    const random = new Random(seed * 1000 + n)
    for (let round = 0; !isStopped; round++) {
      await simulate({
        target,
        history,
        random,
        email: `p${seed}-${n}-${round}@example.com`,
        isOver: () => isStopped,
      })
    }
  })
  return {
    async stop() {
      isStopped = true
      await Promise.all(simulations)
    },
  }
}

export interface SimulatedUser {
  target: Target
  history: History
  random: Random
  email: string
  isOver(): boolean
}

/** One simulated user: signs up and uses the service. Retries requests without an answer, like a good client. */
async function simulate(user: SimulatedUser): Promise<void> {
  const session = await signIn(user)
  if (!session) return
  const keys: { id: string; key: string; dead: boolean }[] = []
  for (let step = 0; step < 8 && !user.isOver(); step++) {
    const choice = user.random.below(6)
    const key = keys.length > 0 ? user.random.pick(keys) : null
    if (choice <= 1 || !key) await createKey(user, session, keys)
    else if (choice === 2) await refresh(user, session)
    else if (choice === 3 && !key.dead) await revokeWhileExchanging(user, session, key)
    else if (choice === 4) await readAccount(user, session)
    else await Promise.all([exchange(user, key), exchange(user, key)])
  }
  // Every key whose creation was acknowledged must work, unless it was revoked.
  for (const key of keys) await expectKeyWorks(user, key)
  if (user.random.below(2) === 0) await logOut(user, session)
}

/** Runs one user after the fault is over. Returns a sentence for each operation that got no answer or a 5xx. */
export async function runWithoutFault(target: Target, history: History, email: string): Promise<string[]> {
  const user: SimulatedUser = { target, history, random: new Random(1), email, isOver: () => false }
  const operationsBefore = history.operations.length
  const session = await signIn(user)
  if (!session) return [`liveness: ${email} could not sign in after the fault was over`]
  const keys: { id: string; key: string; dead: boolean }[] = []
  await createKey(user, session, keys)
  await refresh(user, session)
  if (keys[0]) await exchange(user, keys[0])
  if (keys[0]) await revokeWhileExchanging(user, session, keys[0])
  await readAccount(user, session)
  const unansweredOperations = history.operations
    .slice(operationsBefore)
    .filter(each => each.outcome === 'unknown')
  return unansweredOperations.map(each => `liveness: ${each.op} had no answer after the fault was over`)
}

export async function signIn(user: SimulatedUser): Promise<Session | null> {
  const { target, history, email } = user
  for (let attempt = 0; attempt < 6; attempt++) {
    const sendAnswer = await operate(user, 'send', email, 'POST', '/auth/send-magic-link', {
      body: { email },
    })
    if (sendAnswer?.status !== 200) {
      if (user.isOver()) return null
      await wait(RETRY_MS)
      continue
    }
    const token = await target.mail(email, patienceMs(MAIL_TIMEOUT_MS))
    if (!token) {
      history.violations.push(`a mail that was promised to ${email} did not come in time`)
      return null
    }
    history.secrets.add(token)
    const session = await useLink(user, token)
    if (session) return session
  }
  return null
}

async function useLink(user: SimulatedUser, token: string): Promise<Session | null> {
  const { email } = user
  const verify = () =>
    operate(user, 'verify', token.slice(0, 8), 'POST', '/auth/verify-magic-link', { body: { email, token } })
  const answers: (CallResult | null)[] =
    user.random.below(3) === 0 ? await Promise.all([verify(), verify()]) : [await verify()]
  for (let attempt = 0; attempt < 40 && !answers.some(each => each !== null); attempt++) {
    await wait(RETRY_MS)
    answers.push(await verify())
  }
  const acceptedAnswer = answers.find(each => each?.status === 200)
  if (!acceptedAnswer) return null
  await verify() // The link's second use must fail.
  const { body } = acceptedAnswer
  return recordSecrets(user, {
    id: body.session_id,
    userId: body.user.id,
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
  })
}

async function createKey(
  user: SimulatedUser,
  session: Session,
  keys: { id: string; key: string; dead: boolean }[],
): Promise<void> {
  const token = session.accessToken
  const creationAnswer = await operate(user, 'create', session.userId, 'POST', '/v1/api-keys', {
    token,
    body: {},
  })
  if (creationAnswer?.status !== 201) return
  user.history.secrets.add(creationAnswer.body.key)
  keys.push({ id: creationAnswer.body.id, key: creationAnswer.body.key, dead: false })
}

async function exchange(
  user: SimulatedUser,
  { id, key }: { id: string; key: string },
): Promise<CallResult | null> {
  const answer = await operate(user, 'exchange', id, 'POST', '/auth/agent-token', { body: { api_key: key } })
  if (answer?.status === 200) user.history.secrets.add(answer.body.token)
  return answer
}

async function revokeWhileExchanging(
  user: SimulatedUser,
  session: Session,
  key: { id: string; key: string; dead: boolean },
): Promise<void> {
  const token = session.accessToken
  const revoke = () => operate(user, 'revoke', key.id, 'DELETE', `/v1/api-keys/${key.id}`, { token })
  key.dead = true
  await Promise.all([exchange(user, key), revoke(), exchange(user, key)])
  await exchange(user, key)
}

/** Refreshes with one Idempotency-Key for all attempts, so that a retry after a lost answer counts as no reuse. */
async function refresh(user: SimulatedUser, session: Session): Promise<void> {
  const headers = {
    'Idempotency-Key': `retry-of-${user.random.below(2 ** 31)}-${user.random.below(2 ** 31)}`,
  }
  const body = { refresh_token: session.refreshToken }
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await operate(user, 'refresh', session.id, 'POST', '/auth/refresh', { body, headers })
    if (answer?.status === 200) {
      session.accessToken = answer.body.access_token
      session.refreshToken = answer.body.refresh_token
      recordSecrets(user, session)
      return
    }
    if (answer) {
      user.history.violations.push(`session ${session.id} was lost: ${answer.status} ${answer.body.code}`)
      return
    }
    await wait(RETRY_MS)
  }
}

async function readAccount(user: SimulatedUser, session: Session): Promise<void> {
  const token = session.accessToken
  const me = await operate(user, 'me', session.userId, 'GET', '/v1/me', { token })
  if (me && me.status !== 200) user.history.violations.push(`a live session was refused (${me.status})`)
  if (me?.status === 200 && me.body.balance.amount !== '2.00')
    user.history.violations.push(`a balance is ${me.body.balance.amount}`)
  await operate(user, 'stranger', 'nobody', 'GET', '/v1/api-keys', {})
}

async function expectKeyWorks(
  user: SimulatedUser,
  key: { id: string; key: string; dead: boolean },
): Promise<void> {
  if (key.dead) return
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await exchange(user, key)
    if (answer?.status === 200) return
    if (answer) {
      user.history.violations.push(`key ${key.id} was made and does not work (${answer.body.code})`)
      return
    }
    await wait(RETRY_MS)
  }
}

async function logOut(user: SimulatedUser, session: Session): Promise<void> {
  const body = { refresh_token: session.refreshToken }
  const logoutAnswer = await operate(user, 'logout', session.id, 'POST', '/auth/logout', { body })
  if (logoutAnswer?.status !== 204) return
  await operate(user, 'refresh', session.id, 'POST', '/auth/refresh', { body })
}

function recordSecrets(user: SimulatedUser, session: Session): Session {
  user.history.secrets.add(session.accessToken)
  user.history.secrets.add(session.refreshToken)
  return session
}

/** Makes one call and records it in the history; null if its outcome is unknown. */
export async function operate(
  { target, history, random }: SimulatedUser,
  op: OperationName,
  on: string,
  method: string,
  path: string,
  options: Parameters<typeof call>[3],
): Promise<CallResult | null> {
  const start = performance.now()
  let answer: CallResult | null = null
  try {
    const origin = random.pick(target.origins())
    answer = await call(origin, method, path, options, patienceMs(REQUEST_TIMEOUT_MS))
  } catch {
    // Connection refused or reset, or timeout.
  }
  const isAnswered = answer !== null && answer.status < 500
  const outcome = !isAnswered ? 'unknown' : answer!.status < 400 ? 'ok' : 'fail'
  const code = isAnswered && outcome === 'fail' ? (answer!.body?.code ?? null) : null
  if (answer?.status === 500)
    history.violations.push(`a 500 from ${method} ${path.replace(/[0-9a-f-]{36}/, '{id}')}`)
  history.operations.push({ op, on, start, end: performance.now(), outcome, code })
  return isAnswered ? answer : null
}
