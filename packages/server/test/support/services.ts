import type { TestContext } from 'node:test'
import { createAgentTokens } from '../../src/agent-tokens/agent-tokens.ts'
import { createApiKeys } from '../../src/api-keys/api-keys.ts'
import { createAccounts } from '../../src/billing/accounts.ts'
import type { Log } from '../../src/log.ts'
import { createMagicLinks } from '../../src/magic-links/magic-links.ts'
import type { SendWindow } from '../../src/magic-links/send-limits.ts'
import { type Caller, networkOf } from '../../src/network.ts'
import type { MessageContent, OutboxMessage } from '../../src/outbox/message.ts'
import { createOutbox } from '../../src/outbox/outbox.ts'
import type { Secrets } from '../../src/secrets.ts'
import type { SessionLifetimes } from '../../src/sessions/session-lifetime.ts'
import { createSessions, type SessionTokens } from '../../src/sessions/sessions.ts'
import { createJwt } from '../../src/signing-keys/jwt.ts'
import { createSigningKeys } from '../../src/signing-keys/signing-keys.ts'
import type { Storage } from '../../src/store.ts'
import { type EmailAddress, parseEmailAddress } from '../../src/users/email-address.ts'
import type { User } from '../../src/users/user.ts'
import { createUsers } from '../../src/users/users.ts'
import { type EngineName, openTestStorage, type TestStorage } from './engines.ts'

export const PUBLIC_URL = 'https://keyway.test'
export const LIFETIMES: SessionLifetimes = {
  accessTokenSeconds: 900,
  refreshIdleSeconds: 2_592_000,
  sessionSeconds: 7_776_000,
  refreshGraceSeconds: 0,
}

export interface ServiceOverrides {
  lifetimes?: Partial<SessionLifetimes>
  limits?: SendWindow[]
  networkLimits?: SendWindow[] | null
  verifyUrl?: string
  maxActiveKeys?: number
  log?: Log
  /** Another node on the same database: its storage, and the test storage that it came from. */
  on?: { node: Storage; of: TestStorage }
}

export interface MailedLink {
  token: string
  code: string
  link: string
  loginId: string
}

export type Services = Awaited<ReturnType<typeof openServices>>

/** Every noun on a fresh database, as the server composes them, with a clock that the test moves. */
export async function openServices(engine: EngineName, t: TestContext, overrides: ServiceOverrides = {}) {
  const opened = overrides.on?.of ?? (await openTestStorage(engine, t))
  const storage: Storage = overrides.on?.node ?? opened.storage
  const { clock, secrets } = opened
  const log = overrides.log ?? opened.log
  const publicUrl = PUBLIC_URL
  const lifetimes = { ...LIFETIMES, ...overrides.lifetimes }

  const signingKeys = createSigningKeys({
    storage,
    clock,
    secrets,
    log,
    longestTokenSeconds: lifetimes.accessTokenSeconds,
  })
  await signingKeys.load()
  const jwt = createJwt({ signingKeys, clock, issuer: publicUrl })
  const outbox = createOutbox({ secrets })
  const maxActiveKeys = overrides.maxActiveKeys ?? 100
  const apiKeys = createApiKeys({ storage, clock, log, outbox, maxActiveKeys })
  const agentTokens = createAgentTokens({ storage, apiKeys, jwt, clock, publicUrl })
  const sessions = createSessions({ storage, clock, secrets, jwt, outbox, publicUrl, lifetimes })
  const magicLinks = createMagicLinks({
    storage,
    clock,
    secrets,
    outbox,
    sessions,
    verifyUrl: overrides.verifyUrl ?? `${publicUrl}/verify`,
    limits: overrides.limits ?? [{ window: 'minute', limit: 1000 }],
    networkLimits: overrides.networkLimits ?? null,
  })
  const users = createUsers({ storage, clock, secrets })
  const accounts = createAccounts({ storage, clock })
  const nouns = { apiKeys, agentTokens, sessions, magicLinks, users, accounts, outbox, signingKeys, jwt }

  /** All mails of one kind to one address, newest first, opened. */
  async function mailsTo<Kind extends MessageContent['kind']>(email: string, kind: Kind) {
    const rows = await storage.store.outbox.recentFor(address(email), 1000)
    return rows.filter(row => row.kind === kind).map(row => openMail(secrets, row) as ContentOf<Kind>)
  }

  async function sendTo(email: string, appId = 'console'): Promise<MailedLink> {
    const { loginId } = await magicLinks.send({ email: address(email), appId }, caller())
    const mails = await mailsTo(email, 'sign_in')
    // Mails of one millisecond have no order: take the one whose code this login id can redeem.
    const row = await storage.store.magicLinks.find(loginId)
    const mail = mails.find(({ code }) =>
      secrets.verifyMac('login-code', `${loginId}:${code}`, row!.codeHash),
    )!
    return { ...mailed(mail), loginId }
  }

  return {
    ...nouns,
    opened,
    storage,
    store: storage.store,
    clock,
    secrets,
    log,
    publicUrl,
    lifetimes,
    caller,
    mailsTo,
    /** Sends a link and reads it from the queued mail. */
    sendTo,
    /** The newest sign-in mail to the address, read from the queue. */
    async lastLink(email: string): Promise<Omit<MailedLink, 'loginId'>> {
      const [mail] = await mailsTo(email, 'sign_in')
      if (!mail) throw new Error(`no sign-in mail to ${email} is queued`)
      return mailed(mail)
    },
    /** Sends a link, spends it, and returns an API session. */
    async signIn(email: string): Promise<SignedInUser> {
      const { token } = await sendTo(email)
      const started = await magicLinks.verify({ token, email: address(email) }, 'api', caller())
      return { ...started, tokens: started.tokens! }
    },
  }
}

export interface SignedInUser {
  user: User
  session: { id: string }
  tokens: SessionTokens
  isNewUser: boolean
}

export function caller(ip = '192.0.2.1', client: string | null = 'test'): Caller {
  return { address: ip, network: networkOf(ip), client }
}

export function address(text: string): EmailAddress {
  const email = parseEmailAddress(text)
  if (!email) throw new Error(`${text} is no address`)
  return email
}

type ContentOf<Kind> = Extract<MessageContent, { kind: Kind }>

function openMail(secrets: Secrets, row: OutboxMessage): MessageContent {
  if (row.sealedContent === null) throw new Error(`the mail ${row.id} has left already`)
  return JSON.parse(secrets.open('mail', row.sealedContent, row.id).toString())
}

function mailed({ link, code }: ContentOf<'sign_in'>): Omit<MailedLink, 'loginId'> {
  return { link, code, token: new URL(link).searchParams.get('token')! }
}

/** Runs `count` calls at once; how many succeeded, and the codes that the others were refused with. */
export async function race<Value>(
  count: number,
  call: (index: number) => Promise<Value>,
): Promise<{ won: Value[]; refused: string[] }> {
  const settled = await Promise.allSettled(Array.from({ length: count }, (_, index) => call(index)))
  return {
    won: settled.flatMap(result => (result.status === 'fulfilled' ? [result.value] : [])),
    refused: settled.flatMap(result => (result.status === 'rejected' ? [codeOf(result.reason)] : [])),
  }
}

/** The code that a call was refused with, or `none`. */
export async function refusedWith(call: Promise<unknown>): Promise<string> {
  return call.then(() => 'none', codeOf)
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && 'extras' in error) return String(error.code)
  throw error
}
