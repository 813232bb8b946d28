import { setTimeout as wait } from 'node:timers/promises'
import { type Answered, call } from '../support/nodes.ts'
import { patienceMs } from '../support/patience.ts'
import type { History, OperationName } from './history.ts'
import { createRandom, type Random } from './random.ts'

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
  /** Stops after the current session of each user. */
  stop(): Promise<void>
}

/** `people` concurrent users, each with one simulated session after the other until stopped. */
export function createSimulatedUsers(
  target: Target,
  history: History,
  people: number,
  seed: number,
): SimulatedUsers {
  let stopped = false
  const living = Array.from({ length: people }, async (_, n) => {
    const random = createRandom(seed * 1000 + n)
    for (let life = 0; !stopped; life++) {
      await live({
        target,
        history,
        random,
        email: `p${seed}-${n}-${life}@example.com`,
        isOver: () => stopped,
      })
    }
  })
  return {
    async stop() {
      stopped = true
      await Promise.all(living)
    },
  }
}

export interface Life {
  target: Target
  history: History
  random: Random
  email: string
  isOver(): boolean
}

/** One simulated user: signs up and uses the service. Retries requests without an answer, like a good client. */
async function live(life: Life): Promise<void> {
  const session = await signIn(life)
  if (!session) return
  const keys: { id: string; key: string; dead: boolean }[] = []
  for (let step = 0; step < 8 && !life.isOver(); step++) {
    const choice = life.random.below(6)
    const key = keys.length > 0 ? life.random.pick(keys) : null
    if (choice <= 1 || !key) await createKey(life, session, keys)
    else if (choice === 2) await refresh(life, session)
    else if (choice === 3 && !key.dead) await revokeWhileExchanging(life, session, key)
    else if (choice === 4) await lookAtMyself(life, session)
    else await Promise.all([exchange(life, key), exchange(life, key)])
  }
  // Every acknowledged creation must exist.
  for (const key of keys) await mustExist(life, key)
  if (life.random.below(2) === 0) await logOut(life, session)
}

/** Runs one user after the fault is over, for whom every request must succeed. */
export async function runWithoutFault(target: Target, history: History, email: string): Promise<string[]> {
  const life: Life = { target, history, random: createRandom(1), email, isOver: () => false }
  const before = history.operations.length
  const session = await signIn(life)
  if (!session) return [`liveness: ${email} could not sign in after the fault was over`]
  const keys: { id: string; key: string; dead: boolean }[] = []
  await createKey(life, session, keys)
  await refresh(life, session)
  if (keys[0]) await exchange(life, keys[0])
  if (keys[0]) await revokeWhileExchanging(life, session, keys[0])
  await lookAtMyself(life, session)
  const unknown = history.operations.slice(before).filter(each => each.outcome === 'unknown')
  return unknown.map(each => `liveness: ${each.op} had no answer after the fault was over`)
}

export async function signIn(life: Life): Promise<Session | null> {
  const { target, history, email } = life
  for (let attempt = 0; attempt < 6; attempt++) {
    const sent = await operate(life, 'send', email, 'POST', '/auth/send-magic-link', { body: { email } })
    if (sent?.status !== 200) {
      if (life.isOver()) return null
      await wait(RETRY_MS)
      continue
    }
    const token = await target.mail(email, patienceMs(MAIL_TIMEOUT_MS))
    if (!token) {
      history.violations.push(`I-9: a mail that was promised to ${email} did not come in time`)
      return null
    }
    history.secrets.add(token)
    const session = await useLink(life, token)
    if (session) return session
  }
  return null
}

async function useLink(life: Life, token: string): Promise<Session | null> {
  const { email } = life
  const verify = () =>
    operate(life, 'verify', token.slice(0, 8), 'POST', '/auth/verify-magic-link', { body: { email, token } })
  const answers: (Answered | null)[] =
    life.random.below(3) === 0 ? await Promise.all([verify(), verify()]) : [await verify()]
  for (let attempt = 0; attempt < 40 && !answers.some(each => each !== null); attempt++) {
    await wait(RETRY_MS)
    answers.push(await verify())
  }
  const won = answers.find(each => each?.status === 200)
  if (!won) return null
  await verify() // a second use, which must fail
  const { body } = won
  return remember(life, {
    id: body.session_id,
    userId: body.user.id,
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
  })
}

async function createKey(
  life: Life,
  session: Session,
  keys: { id: string; key: string; dead: boolean }[],
): Promise<void> {
  const token = session.accessToken
  const made = await operate(life, 'create', session.userId, 'POST', '/v1/api-keys', { token, body: {} })
  if (made?.status !== 201) return
  life.history.secrets.add(made.body.key)
  keys.push({ id: made.body.id, key: made.body.key, dead: false })
}

async function exchange(life: Life, { id, key }: { id: string; key: string }): Promise<Answered | null> {
  const answer = await operate(life, 'exchange', id, 'POST', '/auth/agent-token', { body: { api_key: key } })
  if (answer?.status === 200) life.history.secrets.add(answer.body.token)
  return answer
}

async function revokeWhileExchanging(
  life: Life,
  session: Session,
  key: { id: string; key: string; dead: boolean },
): Promise<void> {
  const token = session.accessToken
  const revoke = () => operate(life, 'revoke', key.id, 'DELETE', `/v1/api-keys/${key.id}`, { token })
  key.dead = true
  await Promise.all([exchange(life, key), revoke(), exchange(life, key)])
  await exchange(life, key)
}

/** Refreshes with one Idempotency-Key for all attempts, so that a lost answer does no harm. */
async function refresh(life: Life, session: Session): Promise<void> {
  const headers = {
    'Idempotency-Key': `retry-of-${life.random.below(2 ** 31)}-${life.random.below(2 ** 31)}`,
  }
  const body = { refresh_token: session.refreshToken }
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await operate(life, 'refresh', session.id, 'POST', '/auth/refresh', { body, headers })
    if (answer?.status === 200) {
      session.accessToken = answer.body.access_token
      session.refreshToken = answer.body.refresh_token
      remember(life, session)
      return
    }
    if (answer) {
      life.history.violations.push(
        `I-3: session ${session.id} was lost: ${answer.status} ${answer.body.code}`,
      )
      return
    }
    await wait(RETRY_MS)
  }
}

async function lookAtMyself(life: Life, session: Session): Promise<void> {
  const token = session.accessToken
  const me = await operate(life, 'me', session.userId, 'GET', '/v1/me', { token })
  if (me && me.status !== 200) life.history.violations.push(`I-12: a live session was refused (${me.status})`)
  if (me?.status === 200 && me.body.balance.amount !== '2.00')
    life.history.violations.push(`I-6: a balance is ${me.body.balance.amount}`)
  await operate(life, 'stranger', 'nobody', 'GET', '/v1/api-keys', {})
}

async function mustExist(life: Life, key: { id: string; key: string; dead: boolean }): Promise<void> {
  if (key.dead) return
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await exchange(life, key)
    if (answer?.status === 200) return
    if (answer) {
      life.history.violations.push(`I-12: key ${key.id} was made and does not work (${answer.body.code})`)
      return
    }
    await wait(RETRY_MS)
  }
}

async function logOut(life: Life, session: Session): Promise<void> {
  const body = { refresh_token: session.refreshToken }
  const out = await operate(life, 'logout', session.id, 'POST', '/auth/logout', { body })
  if (out?.status !== 204) return
  await operate(life, 'refresh', session.id, 'POST', '/auth/refresh', { body })
}

function remember(life: Life, session: Session): Session {
  life.history.secrets.add(session.accessToken)
  life.history.secrets.add(session.refreshToken)
  return session
}

/** Makes one call and records it in the history. Null: the outcome is unknown. */
export async function operate(
  { target, history, random }: Life,
  op: OperationName,
  on: string,
  method: string,
  path: string,
  options: Parameters<typeof call>[3],
): Promise<Answered | null> {
  const start = performance.now()
  let answer: Answered | null = null
  try {
    const origin = random.pick(target.origins())
    answer = await call(origin, method, path, options, patienceMs(REQUEST_TIMEOUT_MS))
  } catch {
    // Connection refused or reset, or timeout.
  }
  const known = answer !== null && answer.status < 500
  const outcome = !known ? 'unknown' : answer!.status < 400 ? 'ok' : 'fail'
  const code = known && outcome === 'fail' ? (answer!.body?.code ?? null) : null
  if (answer?.status === 500)
    history.violations.push(`a 500 from ${method} ${path.replace(/[0-9a-f-]{36}/, '{id}')}`)
  history.operations.push({ op, on, start, end: performance.now(), outcome, code })
  return known ? answer : null
}
