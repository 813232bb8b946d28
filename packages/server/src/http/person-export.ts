import { auditEventObject } from '../audit/audit-object.ts'
import { CURRENCY, formatMoney } from '../billing/money.ts'
import { type Clock, DAY, type Instant, MINUTE, toRfc3339, toRfc3339OrNull } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { PageRequest, Position, Slice } from '../paging.ts'
import { securityEventObject } from '../security-events/security-event-object.ts'
import { oldestBucketStart } from '../usage/usage.ts'
import type { User } from '../users/user.ts'
import { chargeAuthorizationObject, emailChangeObject } from './account-object.ts'
import { createKeyObjects } from './api-key-object.ts'
import type { ExportReader, HttpPorts, PersonExports } from './http-ports.ts'
import { ledgerEntryObject } from './ledger-entry-object.ts'
import * as objects from './routes/admin/objects.ts'
import { consentObject } from './routes/consents.ts'
import { usageObject } from './usage-object.ts'
import { userObject } from './user-object.ts'

/** Number of rows that are read by one statement and held in memory. */
const ROWS_PER_READ = 100
/**
 * Number of keys that are read by one statement. Fewer than other rows, since each key may have 16 KiB of metadata, and
 * what is read at once must take only a few milliseconds of the event loop.
 */
const KEYS_PER_READ = 20
/** Maximum number of mails in an export; far more than are retained for one person. */
const MAX_MAILS = 1000
/** Maximum number of concurrent exports of one person; each may read hundreds of MiB. */
const MAX_CONCURRENT_EXPORTS = 2
/** An export from which the client has read nothing for this long no longer counts as running. */
const ABANDONED_AFTER_MS = MINUTE

type Deps = Pick<HttpPorts, 'accounts' | 'apiKeys' | 'consents' | 'emailChanges' | 'sessions' | 'usage'> & {
  store: Pick<HttpPorts['store'], 'audit' | 'billing' | 'securityEvents' | 'outbox' | 'users'>
}

export function createPersonExports(deps: Deps, clock: Clock): PersonExports {
  const { accounts, apiKeys, consents, emailChanges, sessions, usage, store } = deps
  const keyObjects = createKeyObjects(apiKeys, clock)

  /** The running exports by the person's id, each with the time at which a piece was last read. */
  const runningExports = new Map<string, Map<object, Instant>>()

  return {
    exportOf(user, reader, reauthenticate) {
      const encoder = new TextEncoder()
      const pieces = generatePieces(user, reader, reauthenticate)
      const { markRead, end } = registerExport(user.id)
      return new ReadableStream(
        {
          async pull(controller) {
            markRead()
            try {
              const { value, done } = await pieces.next()
              if (!done) return controller.enqueue(encoder.encode(value))
              end()
              controller.close()
            } catch (error) {
              end()
              throw error
            }
          },
          async cancel() {
            end()
            await pieces.return(undefined)
          },
        },
        { highWaterMark: 1 },
      )
    },
  }

  function registerExport(userId: string): { markRead(): void; end(): void } {
    const exportsOfUser = runningExports.get(userId) ?? new Map<object, Instant>()
    const now = clock.now()
    for (const [exportId, readAt] of exportsOfUser)
      if (readAt + ABANDONED_AFTER_MS <= now) exportsOfUser.delete(exportId)
    if (exportsOfUser.size >= MAX_CONCURRENT_EXPORTS) throw tooManyExports()
    const id = {}
    runningExports.set(userId, exportsOfUser)
    exportsOfUser.set(id, now)
    return {
      markRead: () => void exportsOfUser.set(id, clock.now()),
      end() {
        exportsOfUser.delete(id)
        if (exportsOfUser.size === 0 && runningExports.get(userId) === exportsOfUser)
          runningExports.delete(userId)
      },
    }
  }

  async function* generatePieces(
    user: User,
    reader: ExportReader,
    reauthenticate: () => Promise<unknown>,
  ): AsyncGenerator<string, void> {
    const account = await accounts.get(user.id)
    const { plan, status, startedAt } = account.subscription
    yield `{"exported_at":${JSON.stringify(toRfc3339(clock.now()))}`
    yield field('user', userObject(user))
    if (reader === 'operator') yield field('external_id', await store.users.externalIdOf(user.id))
    yield field('balance', { amount: formatMoney(account.balance), currency: CURRENCY })
    yield field('subscription', { plan, status, started_at: toRfc3339(startedAt) })
    yield field('charge_authorizations', account.authorizations.map(chargeAuthorizationObject))
    const emailChange = await emailChanges.pending(user.id)
    yield field('email_change', emailChange && emailChangeObject(emailChange))
    yield field('deletes_at', toRfc3339OrNull(user.deletesAt))
    yield* listField(
      'ledger',
      page => accounts.ledger(user.id, page),
      async rows => rows.map(ledgerEntryObject),
    )
    yield* listField(
      'api_keys',
      page => apiKeys.list(user.id, null, page),
      async rows => (await keyObjects.pageOf({ rows: [...rows], next: null })).data,
      KEYS_PER_READ,
    )
    yield* listField(
      'sessions',
      page => sessions.list(user.id, page),
      async rows => rows.map(objects.sessionObject),
    )
    yield* listField(
      'consents',
      page => consents.list(user.id, page),
      async rows => rows.map(consentObject),
    )
    yield* listField(
      'security_events',
      page => store.securityEvents.list(user.id, page),
      async rows => rows.map(securityEventObject),
    )
    yield field('mails', await mailsOf(user, reader))
    // The oldest day is left out, since it may be pruned during the export.
    const from = oldestBucketStart('day', clock.now()) + DAY
    const days = await usage.ofUser(user.id, { bucket: 'day', from })
    yield field('usage', days.filter(isUsed).map(usageObject))
    if (reader === 'operator') yield* auditField(user)
    yield '}\n'

    async function* listField<Row>(
      name: string,
      read: (page: PageRequest) => Promise<Slice<Row>>,
      toObjects: (rows: readonly Row[]) => Promise<readonly unknown[]>,
      limit = ROWS_PER_READ,
    ): AsyncGenerator<string> {
      yield `,"${name}":[`
      let after: Position | null = null
      let isFirst = true
      do {
        if (!isFirst) await reauthenticate()
        const { rows, next }: Slice<Row> = await read({ limit, after })
        yield serialize(await toObjects(rows), isFirst)
        isFirst = isFirst && rows.length === 0
        after = next
      } while (after)
      yield ']'
    }

    async function* auditField({ id }: User): AsyncGenerator<string> {
      yield ',"audit_events":['
      for (let lastSequence = 0, isFirst = true; ; isFirst = false) {
        await reauthenticate()
        const rows = await store.audit.after(lastSequence, { subject: id }, ROWS_PER_READ)
        yield serialize(rows.map(auditEventObject), isFirst)
        if (rows.length < ROWS_PER_READ) break
        lastSequence = rows.at(-1)!.sequence
      }
      yield ']'
    }
  }

  async function mailsOf({ email }: User, reader: ExportReader): Promise<unknown[]> {
    if (!email) return []
    const rows = await store.outbox.recentFor(email, MAX_MAILS)
    return rows.map(objects.mailObject).map(({ last_error, ...mail }) =>
      // Responses of mail servers are shown to the operator only.
      reader === 'operator' ? { ...mail, last_error } : mail,
    )
  }
}

function tooManyExports(): KeywayError {
  const detail = `${MAX_CONCURRENT_EXPORTS} exports of this account are being read. Try again when one of them has ended.`
  return new KeywayError('rate_limited', detail, { retryAfter: 10 })
}

function field(name: string, value: unknown): string {
  return `,"${name}":${JSON.stringify(value)}`
}

/** Serialises consecutive elements of a list, with a comma before each unless it is the first of the whole list. */
function serialize(elements: readonly unknown[], isFirst: boolean): string {
  const text = elements.map(element => JSON.stringify(element)).join(',\n')
  return text && !isFirst ? `,\n${text}` : text
}

/** The export omits days without use. */
function isUsed({ start: _, refused, ...counts }: Parameters<typeof usageObject>[0]): boolean {
  return Object.values(counts).some(count => count > 0) || Object.keys(refused).length > 0
}
