import { type Clock, type Instant, SECOND } from '../clock.ts'
import { type Log, maskAddress } from '../log.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { Storage, Store } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { backoff, GIVE_UP_AFTER } from './backoff.ts'
import { isInterrupted } from './interruption.ts'
import type { MessageContent, OutboxMessage, QueuedContent } from './message.ts'
import { type Mailer, MailRejected, type MailWriter } from './outbox.ts'

/** A sign-in mail with less remaining validity is not sent: it could not be used in time. */
export const MIN_VALIDITY_LEFT = 60 * SECOND
/** Time limit of one attempt; well below LEASE (dispatcher.ts), so that no other node leases the message meanwhile. */
export const DELIVERY_DEADLINE = 30 * SECOND
/** The delay between two attempts to reach an unavailable database. */
export const STORE_PAUSE = SECOND

export type Outcome = 'sent' | 'failed' | 'expired'

/** Calls `callback` once after `delay` milliseconds. Returns a function that cancels it. */
export type Schedule = (callback: () => void, delay: number) => () => void

export interface DeliveryDeps {
  /** The node that leases mails: other nodes release its leases once it is dead. Leases without a node only expire. */
  nodeId?: string
  storage: Storage
  clock: Clock
  secrets: Secrets
  mailer: Mailer
  write: MailWriter
  /** Whether an address without an account may sign up. */
  maySignUp(store: Store, email: EmailAddress): Promise<boolean>
  log: Log
  /** Called once for each mail, after its outcome was stored. */
  onSettled?: (state: Outcome) => void
  schedule?: Schedule
  random?: () => number
}

/**
 * Attempts to send one leased message, and stores the outcome or the time of the next attempt. Rejects only if the
 * database is unavailable.
 */
export async function deliver(
  deps: DeliveryDeps,
  message: OutboxMessage,
  abort: AbortController,
  onSent: () => void,
): Promise<void> {
  const { clock, log } = deps
  const logFields = { message_id: message.id, kind: message.kind, recipient: maskAddress(message.recipient) }
  const content = openContent(deps.secrets, message)
  if (content instanceof Error) {
    log.error(
      { ...logFields, reason: content.message },
      'A queued mail cannot be decrypted and is given up. Was a secret removed from KEYWAY_SECRET too early?',
    )
    return storeOutcome(deps, message, 'failed', content.message)
  }
  const now = clock.now()
  const suppression = await deps.storage.store.suppressions.find(message.recipient, now)
  if (suppression) {
    const reason = `not sent: the address is suppressed after a ${suppression.reason}`
    log.warn({ ...logFields, reason }, 'A mail was not sent.')
    return storeOutcome(deps, message, 'failed', reason)
  }
  if (content.kind === 'sign_in' && !(await maySignIn(deps, message.recipient))) {
    // This is not a warning, since anybody can cause it.
    log.debug(logFields, 'A sign-in mail was not sent: sign-up is not open to the address.')
    return storeOutcome(deps, message, 'failed', SIGN_UP_NOT_OPEN)
  }
  const lastUsefulAt = lastUsefulInstant(message, content)
  if (lastUsefulAt !== null && now > lastUsefulAt) {
    log.warn(logFields, 'A queued mail expired and was not sent.')
    return storeOutcome(deps, message, 'expired', message.lastError)
  }

  try {
    await attempt(deps, message, content, abort)
  } catch (error) {
    const reason = describeError(error)
    if (error instanceof MailRejected) {
      log.warn({ ...logFields, reason }, 'A mail was refused and is not retried.')
      return storeRefusal(deps, message, reason)
    }
    const mayGiveUp = !isInterrupted(abort.signal)
    return retryLater(deps, message, { ...logFields, reason }, lastUsefulAt, mayGiveUp)
  }
  onSent()
  log.debug(logFields, 'A mail was sent.')
  return storeOutcome(deps, message, 'sent', null)
}

const SIGN_UP_NOT_OPEN = 'not sent: there is no account, and sign-up is not open to the address'

/**
 * Whether the address has an account or may get one. This is checked at delivery, so that the request for the mail does
 * the same work whether or not the account exists.
 */
async function maySignIn(
  { storage: { store }, maySignUp }: DeliveryDeps,
  email: EmailAddress,
): Promise<boolean> {
  return (await store.users.findByEmail(email)) !== null || maySignUp(store, email)
}

/** The last instant at which the message is worth sending; null if it always is. */
function lastUsefulInstant(message: OutboxMessage, content: MessageContent): Instant | null {
  if (content.kind !== 'sign_in') return message.sendBefore
  return Math.min(content.expiresAt - MIN_VALIDITY_LEFT, message.sendBefore ?? Number.POSITIVE_INFINITY)
}

function openContent(secrets: Secrets, message: OutboxMessage): QueuedContent | Error {
  if (message.sealedContent === null) return new Error('its content was erased')
  try {
    return JSON.parse(secrets.open('mail', message.sealedContent, message.id).toString())
  } catch (error) {
    return error instanceof SealError ? error : new Error('its content is damaged')
  }
}

async function attempt(
  { storage, mailer, write, schedule = scheduleTimer }: DeliveryDeps,
  message: OutboxMessage,
  content: QueuedContent,
  abort: AbortController,
): Promise<void> {
  const cancel = schedule(
    () => abort.abort(new Error(`not accepted within ${DELIVERY_DEADLINE / SECOND} seconds`)),
    DELIVERY_DEADLINE,
  )
  try {
    const { id, recipient } = message
    const user = await storage.store.users.findByEmail(recipient)
    const locale = user?.locale ?? content.locale ?? null
    const mail = await write({ id, recipient, content, locale }, user !== null)
    await Promise.race([mailer.deliver(mail, abort.signal), rejectOnAbort(abort.signal)])
  } finally {
    cancel()
  }
}

/** Rejects at the deadline, or when the service stops, even if the mailer ignores the signal. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

async function retryLater(
  deps: DeliveryDeps,
  message: OutboxMessage,
  logFields: { reason: string },
  lastUsefulAt: number | null,
  mayGiveUp: boolean,
): Promise<void> {
  const { storage, clock, log, random = Math.random } = deps
  const now = clock.now()
  if (mayGiveUp && now - message.createdAt >= GIVE_UP_AFTER) {
    log.error(logFields, 'A mail could not be delivered and is given up.')
    return storeOutcome(deps, message, 'failed', logFields.reason)
  }
  const nextAttemptAt = now + backoff(Math.max(1, message.attempts), random())
  if (lastUsefulAt !== null && nextAttemptAt > lastUsefulAt) {
    log.warn(logFields, 'A mail could not be delivered before it expired.')
    return storeOutcome(deps, message, 'expired', logFields.reason)
  }
  log.warn({ ...logFields, attempts: message.attempts }, 'A mail could not be delivered; trying again later.')
  await retryUntilLeaseEnds(deps, message.leasedUntil!, () =>
    storage.store.outbox.retryLater(message.id, message.leasedUntil!, nextAttemptAt, logFields.reason),
  )
}

async function storeOutcome(
  deps: DeliveryDeps,
  message: OutboxMessage,
  state: Outcome,
  error: string | null,
): Promise<void> {
  const isSettled = await retryUntilLeaseEnds(deps, message.leasedUntil!, () =>
    deps.storage.store.outbox.settle(message.id, message.leasedUntil!, {
      state,
      at: deps.clock.now(),
      error,
    }),
  )
  if (isSettled) deps.onSettled?.(state)
}

/** Stores the outcome `failed`, and announces the refusal to webhooks, like a bounce that a provider reports. */
async function storeRefusal(deps: DeliveryDeps, message: OutboxMessage, error: string): Promise<void> {
  const { storage, clock } = deps
  const at = clock.now()
  const isSettled = await retryUntilLeaseEnds(deps, message.leasedUntil!, () =>
    storage.transaction(async tx => {
      const outcome = { state: 'failed' as const, at, error }
      if (!(await tx.outbox.settle(message.id, message.leasedUntil!, outcome))) return false
      const userId = message.userId ?? (await tx.users.findByEmail(message.recipient))?.id ?? null
      tx.announce({
        type: 'mail.bounced',
        subject: { type: 'mail', id: userId ?? message.id },
        at,
        data: { user_id: userId, reason: 'refused', provider: null, suppressed_until: null },
      })
      return true
    }),
  )
  if (isSettled) deps.onSettled?.('failed')
}

/**
 * Retries a write until shortly before the lease ends, so that a short outage of the database does not cause a second
 * sending. Then rejects with the last error.
 */
export async function retryUntilLeaseEnds<Result>(
  { clock, schedule = scheduleTimer }: Pick<DeliveryDeps, 'clock' | 'schedule'>,
  leasedUntil: Instant,
  write: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (clock.now() + STORE_PAUSE >= leasedUntil) throw error
      await new Promise<void>(resolve => schedule(resolve, STORE_PAUSE))
    }
  }
}

const MAX_REASON_LENGTH = 200

/**
 * The text of an error, at most 200 characters, for logs and the outbox row. A mail server may have chosen the text, so
 * addresses, URLs and control characters are replaced.
 */
export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text
    .slice(0, 2000)
    .replace(/\S+/g, maskUrl)
    .replace(/[^\s<>"'(),;:]+/g, word => (/^.+@./.test(word) ? maskAddress(word) : word))
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .slice(0, MAX_REASON_LENGTH)
}

/** Replaces a URL in a word. A regular expression for this would not match in linear time. */
function maskUrl(word: string): string {
  const colon = word.indexOf('://')
  if (colon < 1 || colon + 3 === word.length) return word
  let start = colon
  while (start > 0 && /[a-z0-9+.-]/i.test(word[start - 1]!)) start--
  return start < colon ? `${word.slice(0, start)}<url>` : word
}

export function scheduleTimer(callback: () => void, delay: number): () => void {
  const timer = setTimeout(callback, delay)
  // The timer must not keep a finished command alive.
  timer.unref()
  return () => clearTimeout(timer)
}
