import { toRfc3339 } from '../clock.ts'
import { addressBucketName, returningBucketName, WINDOW_LENGTHS } from '../magic-links/send-limits.ts'
import type { Suppression } from '../outbox/suppression.ts'
import type { Services } from '../services.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'
import type { User } from '../users/user.ts'
import { type Command, type CommandContext, table } from './command.ts'
import { keyJson, mailJson, sessionJson, userJson } from './user-json.ts'

/** Maximum number of keys, sessions and mails that are shown. */
const MAX_SHOWN = 10

export const commands: Command[] = [
  {
    name: 'users show',
    args: ['WHO'],
    summary: 'Show an account: its keys, sessions and last mails.',
    help: `WHO is an id or an e-mail address. If a user reports "I got no mail", read from top to bottom: SUPPRESSED says whether
the address bounced (see "mail unsuppress"), LIMITS which window is full and until when (see "users clear-limits"),
MAILS the state of the last ten mails. An address without account is shown too if mail to it was requested. No link,
code or key is shown.`,
    async run(context) {
      const services = await context.services()
      const subject = await findSubject(services, context.args[0]!)
      return show(context, services, subject)
    },
  },
]

/**
 * Finds the account; if there is none, an address that has a mail in the outbox (also a sent one) or a suppression.
 *
 * @throws KeywayError `not_found` for any other text
 */
async function findSubject(services: Services, who: string): Promise<ShownSubject> {
  const email = parseEmailAddress(who)
  const hasNoAccount = email !== null && (await services.storage.store.users.findByEmail(email)) === null
  if (!hasNoAccount) {
    const user = await services.users.find(who)
    return { user, email: user.email as EmailAddress | null }
  }
  const [mail] = await services.storage.store.outbox.recentFor(email, 1)
  const suppression = await services.suppressions.find(email)
  return mail || suppression ? { user: null, email } : { user: await services.users.find(who), email }
}

interface ShownSubject {
  user: User | null
  email: EmailAddress | null
}

async function show(
  context: CommandContext,
  services: Services,
  { user, email }: ShownSubject,
): Promise<number> {
  const { storage, apiKeys, sessions, clock } = services
  const page = { limit: MAX_SHOWN, after: null }
  const keys = user
    ? (await apiKeys.list(user.id, null, page)).rows.map(key => keyJson(key, clock.now()))
    : []
  const liveSessions = user ? (await sessions.list(user.id, page)).rows.map(sessionJson) : []
  const mails = email ? (await storage.store.outbox.recentFor(email, MAX_SHOWN)).map(mailJson) : []
  const windows = email ? await windowStatesOf(services, email) : []
  const suppression = email ? suppressionJson(await services.suppressions.find(email)) : null
  const userFields = user && userJson(user)

  const text = [
    userFields
      ? section(
          'USER',
          Object.entries(userFields).map(([name, value]) => [name, String(value ?? '-')]),
        )
      : `NO ACCOUNT\n  ${email} has no account.`,
    section('SUPPRESSED', suppression ? [[suppression.reason, `until ${suppression.until}`]] : []),
    section(
      'LIMITS',
      windows
        .filter(({ who, used }) => who === 'address' || used > 0)
        .map(({ who, window, used, limit, free_at: freeAt }) => [
          who === 'address' ? window : `${window}, recognised browsers`,
          `${used} of ${limit}`,
          freeAt ? `full until ${freeAt}` : '',
        ]),
    ),
    section(
      'KEYS',
      keys.map(key => [`${key.key_prefix}…`, key.status, key.name ?? '-', key.id]),
    ),
    section(
      'SESSIONS',
      liveSessions.map(session => [session.last_used_at, session.network, session.client ?? '-']),
    ),
    section(
      'MAILS',
      mails.map(mail => [mail.created_at, mail.kind, mail.state, mail.last_error ?? '']),
    ),
  ].join('\n')
  context.print({ user: userFields, suppression, windows, keys, sessions: liveSessions, mails }, text)
  return 0
}

function section(title: string, lines: string[][]): string {
  const linesOrNone = lines.length > 0 ? lines : [['none']]
  return table(
    [title, ...linesOrNone[0]!.slice(1).map(() => '')],
    linesOrNone.map(([first = '', ...rest]) => [`  ${first}`, ...rest]),
  )
}

/**
 * For each window of the two counts of sends to this mailbox, whatever the `+tag` (`returning`: requested from browsers
 * that signed in to the same address before; `address`: all others): the number of accepted sends, and, if the window
 * is full, when it accepts the next.
 */
async function windowStatesOf({ storage, clock, config }: Services, email: EmailAddress) {
  const now = clock.now()
  const windows = config.magicLinkLimits
  const buckets = { address: addressBucketName(email), returning: returningBucketName(email) }
  const states = []
  for (const [who, bucket] of Object.entries(buckets)) {
    for (const { window, limit } of windows) {
      const length = WINDOW_LENGTHS[window]
      const times = await storage.store.magicLinks.sendTimesOf(bucket, now - length, limit)
      const oldest = times.length === limit ? times.at(-1)! : null
      const freeAt = oldest === null ? null : toRfc3339(oldest + length)
      states.push({ who, window, used: times.length, limit, free_at: freeAt })
    }
  }
  return states
}

function suppressionJson(suppression: Suppression | null) {
  if (!suppression) return null
  const { reason, provider, at, until } = suppression
  return { reason, provider, at: toRfc3339(at), until: toRfc3339(until) }
}
