import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { openJournal } from '../../src/backup/journal.ts'
import { serviceIdOf } from '../../src/backup/journal-entry.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import type { RequestLimit, WantedLimits } from '../../src/limits/limit.ts'
import type { Log } from '../../src/log.ts'
import type { SendWindow } from '../../src/magic-links/send-limits.ts'
import { type Caller, networkOf } from '../../src/network.ts'
import type { MessageContent, OutboxMessage } from '../../src/outbox/message.ts'
import type { RateWindow } from '../../src/rate-windows.ts'
import type { Secrets } from '../../src/secrets.ts'
import { compose } from '../../src/services.ts'
import type { SessionLifetimes } from '../../src/sessions/session-lifetime.ts'
import type { SessionTokens } from '../../src/sessions/sessions.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import { createDb } from '../../src/storage/engine.ts'
import { type EmailAddress, parseEmailAddress } from '../../src/users/email-address.ts'
import { openPepper } from '../../src/users/trial-credit.ts'
import type { User, UserRole } from '../../src/users/user.ts'
import { type EngineName, openTestStorage, type TestStorage } from './engines.ts'
import { quickFolder } from './quick-folder.ts'

export const PUBLIC_URL = 'https://keyway.test'
/** The actor of administrative acts in tests that do not check the actor. */
const BY_TEST = BY_COMMAND_LINE

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
  keyCreationLimits?: RateWindow[]
  exchangeLimits?: RateWindow[]
  keyLimits?: RequestLimit[]
  keyDefaults?: RequestLimit[]
  personLimits?: RequestLimit[]
  /** Environment variables, as an operator sets them. */
  settings?: Record<string, string>
  log?: Log
  mailHookSecret?: string
  webhookPrivateNetworks?: string[]
  adminEmails?: string[]
  poolSize?: number
  /** Composes another node on the same database: `node` was opened by `of.reopen()`. */
  on?: { node: DatabaseStorage; of: TestStorage }
}

export interface MailedLink {
  token: string
  code: string
  link: string
  loginId: string
}

export type Services = Awaited<ReturnType<typeof openServices>>

/**
 * All services on a fresh database, composed as in the server, with a journal and a clock that the test advances.
 */
export async function openServices(engine: EngineName, t: TestContext, overrides: ServiceOverrides = {}) {
  const testStorage = overrides.on?.of ?? (await openTestStorage(engine, t, overrides))
  const { clock, secrets } = testStorage
  const log = overrides.log ?? testStorage.log
  const config = configOf(overrides)
  const undecoratedStorage = overrides.on?.node ?? testStorage.storage
  const serviceId = serviceIdOf(await openPepper(undecoratedStorage, secrets))
  const journalDir = mkdtempSync(join(quickFolder(), 'keyway-journal-'))
  const journal = await openJournal(journalDir, { clock, secrets, serviceId })
  t.after(async () => {
    await journal.close()
    rmSync(journalDir, { recursive: true })
  })
  const composedServices = compose(config, log, {
    storage: undecoratedStorage,
    clock,
    secrets,
    serviceId,
    journal,
  })
  await composedServices.signingKeys.load()
  const { storage, magicLinks, users, apiKeys, signingKeys } = composedServices

  /** The contents of all mails of one kind to one address, newest first. */
  async function mailsTo<Kind extends MessageContent['kind']>(email: string, kind: Kind) {
    const rows = await storage.store.outbox.recentFor(address(email), 1000)
    return rows.filter(row => row.kind === kind).map(row => openMail(secrets, row) as ContentOf<Kind>)
  }

  async function sendTo(email: string, appId = 'console'): Promise<MailedLink> {
    const { loginId } = await magicLinks.send({ email: address(email), appId }, caller())
    const mails = await mailsTo(email, 'sign_in')
    // Mails of the same millisecond have no order: take the one whose code belongs to this login id.
    const row = await storage.store.magicLinks.find(loginId)
    const mail = mails.find(({ code }) =>
      secrets.verifyMac('login-code', `${loginId}:${code}`, row!.codeHash),
    )!
    return { ...linkOf(mail), loginId }
  }

  return {
    ...composedServices,
    users: {
      ...users,
      suspend: (id: string, by = BY_TEST) => users.suspend(id, by),
      activate: (id: string, by = BY_TEST) => users.activate(id, by),
      delete: (id: string, by = BY_TEST) => users.delete(id, by),
      setRole: (id: string, role: UserRole, by = BY_TEST) => users.setRole(id, role, by),
    },
    apiKeys: {
      ...apiKeys,
      revokeById: (id: string, by = BY_TEST) => apiKeys.revokeById(id, by),
      setOperatorLimits: (id: string, limits: WantedLimits, by = BY_TEST) =>
        apiKeys.setOperatorLimits(id, limits, by),
    },
    signingKeys: { ...signingKeys, rotate: (by = BY_TEST) => signingKeys.rotate(by) },
    opened: testStorage,
    store: storage.store,
    publicUrl: config.publicUrl,
    lifetimes: { ...LIFETIMES, ...overrides.lifetimes },
    caller,
    mailsTo,
    /** Sends a link and reads it from the queued mail. */
    sendTo,
    /** The newest sign-in mail to the address, read from the queue. */
    async lastLink(email: string): Promise<Omit<MailedLink, 'loginId'>> {
      const [mail] = await mailsTo(email, 'sign_in')
      if (!mail) throw new Error(`no sign-in mail to ${email} is queued`)
      return linkOf(mail)
    },
    /** Sends a link, verifies it, and returns an API session. */
    async signIn(email: string): Promise<SignedInUser> {
      const { token } = await sendTo(email)
      return magicLinks.verify({ token, email: address(email) }, 'api', caller())
    },
  }
}

function configOf({ lifetimes, ...overrides }: ServiceOverrides): Config {
  const settings = loadConfig({
    KEYWAY_PUBLIC_URL: PUBLIC_URL,
    KEYWAY_SECRET: Buffer.alloc(32, 7).toString('base64'),
    KEYWAY_MAIL_URL: 'smtp://mail.keyway.test:587',
    KEYWAY_MAIL_FROM: 'Keyway <no-reply@keyway.test>',
    KEYWAY_SUPPORT_EMAIL: 'support@keyway.test',
    ...overrides.settings,
  })
  return {
    ...settings,
    ...LIFETIMES,
    ...lifetimes,
    magicLinkLimits: overrides.limits ?? [{ window: 'minute', limit: 1000 }],
    magicLinkNetworkLimits: overrides.networkLimits ?? null,
    maxActiveKeys: overrides.maxActiveKeys ?? settings.maxActiveKeys,
    keyCreationLimits: overrides.keyCreationLimits ?? [],
    exchangeLimits: overrides.exchangeLimits ?? [],
    keyLimits: overrides.keyLimits ?? [],
    keyDefaults: overrides.keyDefaults ?? [],
    personLimits: overrides.personLimits ?? [],
    verifyUrl: overrides.verifyUrl ?? settings.verifyUrl,
    mailHookSecret: overrides.mailHookSecret ?? null,
    webhookPrivateNetworks: overrides.webhookPrivateNetworks ?? [],
    adminEmails: (overrides.adminEmails ?? []).map(address),
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
  if (row.sealedContent === null) throw new Error(`the mail ${row.id} was already sent`)
  return JSON.parse(secrets.open('mail', row.sealedContent, row.id).toString())
}

function linkOf({ link, code }: ContentOf<'sign_in'>): Omit<MailedLink, 'loginId'> {
  return { link, code, token: new URL(link).searchParams.get('token')! }
}

/** Runs `count` concurrent calls; returns the values of the successful ones, and the codes of the refused ones. */
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

/** The error code of a refused call, or `none` if it succeeded. Rejects with any other error. */
export async function refusedWith(call: Promise<unknown>): Promise<string> {
  return call.then(() => 'none', codeOf)
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && 'extras' in error) return String(error.code)
  throw error
}

/** The names of the tables that contain a text in any column. */
export async function tablesWith({ opened }: Services, text: string): Promise<string[]> {
  const { engine } = opened.storage
  const tables: string[] = []
  for (const { name } of await createDb(engine, engine.connection).introspection.getTables()) {
    const { rows } = await engine.connection.execute(`select * from ${name}`, [])
    if (JSON.stringify(rows).includes(text)) tables.push(name)
  }
  return tables.sort()
}
