import type { FieldError } from '@keyway/sdk/protocol'
import {
  type ActedBy,
  type Audit,
  auditedOutcome,
  BY_COMMAND_LINE,
  createAudit,
  withoutChanges,
} from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { equals, sha256 } from '../secrets.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { Storage, Transaction } from '../store.ts'
import {
  type App,
  type AppSettings,
  CLI_CLIENT_ID,
  DEFAULT_APP_ID,
  DEFAULT_APP_SETTINGS,
  isAppId,
  isClientUrl,
  type LiveCredentials,
} from './app.ts'
import { appChanged, appRegistered, appRemoved, appSecretCreated, appSecretRemoved } from './app-changes.ts'
import { type AppSecret, type NewAppSecret, newAppSecret, removedByNext, secretIdOf } from './app-secret.ts'
import { problemsOf } from './app-settings.ts'
import type { AppPage } from './app-store.ts'

/** Maximum number of sessions, authorisations or consents of a removed app that one transaction ends. */
const REMOVAL_BATCH = 500

export type NewApp = Pick<AppSettings, 'name'> &
  Partial<AppSettings> & {
    id: string
    /** Whether the app's rights include keys and sessions that were created under its id before; false by default. */
    adopt?: boolean
  }

export interface RegisteredApp {
  app: App
  /** Numbers of live keys and sessions that were created under its id before it was registered. */
  older: LiveCredentials
  /** Null for a public client, and for one that authenticates by `private_key_jwt`. */
  secret: string | null
}

export interface EndedByRemoval {
  sessions: number
  authorizations: number
  consents: number
}

/** The registered apps. Every change is audited as an act of `by`, by default of the `keyway` command. */
export interface Apps {
  list(): Promise<App[]>
  /** See `AppStore.page`. */
  page(wanted: AppPage): Promise<App[]>
  /** @throws KeywayError `not_found` */
  find(id: string): Promise<App>
  /**
   * Registers an app and, unless it authenticates in another way, creates its first secret, returned only here. Only
   * with `adopt` has the app rights over keys and sessions with its id that were created before.
   *
   * @throws KeywayError `invalid_request`, also when the id or the audience is taken
   */
  register(wanted: NewApp, by?: ActedBy): Promise<RegisteredApp>
  /**
   * Changes the given settings; lists are replaced. A client that becomes public loses its secrets.
   *
   * @throws KeywayError `invalid_request`, `not_found`, `forbidden` (an app that describes itself at a URL)
   */
  change(id: string, changes: Partial<AppSettings>, by?: ActedBy): Promise<App>
  /**
   * Removes an app, with effect on every node at once: its secrets, the sessions that it was granted, its
   * authorisations to charge, and people's consents. Keys and sign-ins of people that only have its id as a label stay
   * valid. If the removal is interrupted, repeating it ends the rest.
   *
   * @throws KeywayError `not_found` (no such app, and an earlier removal left nothing to end), `forbidden` (one of the
   *   service's own apps)
   */
  remove(id: string, by?: ActedBy): Promise<EndedByRemoval>
  /** The valid secrets, newest first. @throws KeywayError `not_found` */
  secrets(id: string): Promise<AppSecret[]>
  /**
   * Creates a secret, returned only here. The previous secret stays valid; the one before it is removed.
   *
   * @param removes the id of the secret that may be removed; null: no secret may be removed; absent: any secret may
   * @throws KeywayError `not_found`, `invalid_request` (a public client, or another secret would be removed), `forbidden`
   *   (an app that describes itself at a URL)
   */
  newSecret(id: string, by?: ActedBy, removes?: string | null): Promise<NewAppSecret>
  /** Removes one secret, with effect on every node at once. @throws KeywayError `not_found` */
  removeSecret(id: string, secretId: string, by?: ActedBy): Promise<void>
  authenticate(id: string, secret: string): Promise<App | null>
}

/**
 * @param ownAudiences the audiences of this service's own tokens, which no app may register
 * @param ensureKey creates the first signing key of an algorithm, so that it is published before its first use
 */
export function createApps({
  storage,
  clock,
  ownAudiences = [],
  ensureKey = async () => {},
  audit = createAudit({ storage, clock }),
}: {
  storage: Storage
  clock: Clock
  ownAudiences?: readonly string[]
  ensureKey?: (alg: SigningAlg) => Promise<unknown>
  audit?: Audit
}): Apps {
  const { apps } = storage.store

  return {
    list: () => apps.list(),
    page: wanted => apps.page(wanted),

    find,

    async register({ adopt = false, ...wanted }, by = BY_COMMAND_LINE) {
      const createdAt = clock.now()
      const app: App = {
        ...DEFAULT_APP_SETTINGS,
        ...wanted,
        firstParty: false,
        createdAt,
        coversFrom: adopt ? 0 : createdAt,
      }
      assertValid(app)
      // Older keys and sessions are counted first, so that no app is registered if the count fails.
      const older = await apps.countLive(app.id, createdAt)
      await ensureKeys(app)
      // If the removal of an earlier app with this id was interrupted, the new app must not get its sessions.
      if ((await apps.removedAt(app.id)) !== null) await endSessionsAndGrantsOf(app.id)
      const secret = authenticatesBySecret(app) ? newAppSecret() : null
      const outcome = await audit.perform<'audience' | 'id' | null>(by, async tx => {
        if (await isAudienceTaken(tx, app)) return withoutChanges('audience')
        if (!(await tx.apps.insert(app))) return withoutChanges('id')
        if (secret !== null) await tx.apps.addSecret(app.id, sha256(secret), createdAt)
        return auditedOutcome(null, appRegistered(app))
      })
      if (outcome) throw alreadyTaken(outcome)
      return { app, older, secret }
    },

    async change(id, changes, by = BY_COMMAND_LINE) {
      const existingApp = await find(id)
      if (isClientUrl(id)) throw describesItself()
      // Checked before the lock too, so that a wrong value costs no transaction.
      assertValid({ ...existingApp, ...changes })
      await ensureKeys({ ...existingApp, ...changes })
      const outcome = await audit.perform<App | 'not_found' | 'audience' | FieldError[]>(by, async tx => {
        const current = await tx.apps.lock(id)
        if (!current) return withoutChanges('not_found')
        const app = { ...current, ...changes }
        const problems = problemsWith(app)
        if (problems.length > 0) return withoutChanges(problems)
        if (await isAudienceTaken(tx, app)) return withoutChanges('audience')
        await tx.apps.update(app)
        if (app.isPublic && !current.isPublic) await tx.apps.dropSecrets(id)
        return auditedOutcome(app, ...appChanged(current, app))
      })
      if (outcome === 'not_found') throw noSuchApp()
      if (outcome === 'audience') throw alreadyTaken(outcome)
      if (Array.isArray(outcome)) throw invalidRequest(outcome)
      return outcome as App
    },

    async remove(id, by = BY_COMMAND_LINE) {
      const app = isStorableId(id) ? await apps.find(id) : null
      if (app?.firstParty || id === CLI_CLIENT_ID) throw cannotRemoveOwnApp(id)
      const now = clock.now()
      const isRemoved =
        app !== null &&
        (await audit.perform(by, async tx =>
          (await tx.apps.remove(id, now)) ? auditedOutcome(true, appRemoved(id)) : withoutChanges(false),
        ))
      // From here on the app's tokens are refused, since each check reads the app. Its sessions and consents are still
      // ended one by one, so that lists, the revocation feed and the journal show each end.
      const endedCounts = (await apps.removedAt(id)) === null ? null : await endSessionsAndGrantsOf(id)
      if (
        !endedCounts ||
        (!isRemoved && endedCounts.sessions + endedCounts.authorizations + endedCounts.consents === 0)
      )
        throw noSuchApp()
      return endedCounts
    },

    async newSecret(id, by = BY_COMMAND_LINE, removes) {
      await find(id)
      if (isClientUrl(id)) throw describesItself()
      const secret = newAppSecret()
      const storedSecret = { hash: sha256(secret), createdAt: clock.now() }
      const secretId = secretIdOf(storedSecret)
      const outcome = await audit.perform<'not_found' | 'public' | 'removes_another' | null>(by, async tx => {
        const app = await tx.apps.lock(id)
        if (!app) return withoutChanges('not_found')
        if (app.isPublic) return withoutChanges('public')
        const idRemovedByNext = removedByNext((await tx.apps.datedSecrets(id)).map(secretIdOf))
        if (removes !== undefined && idRemovedByNext !== null && idRemovedByNext !== removes)
          return withoutChanges('removes_another')
        await tx.apps.addSecret(id, storedSecret.hash, storedSecret.createdAt)
        return auditedOutcome(null, appSecretCreated(id, secretId))
      })
      if (outcome === 'not_found') throw noSuchApp()
      if (outcome === 'public') throw publicClientHasNoSecret()
      if (outcome === 'removes_another') throw wrongSecretToRemove()
      return { id: secretId, createdAt: storedSecret.createdAt, secret }
    },

    async secrets(id) {
      await find(id)
      return (await apps.datedSecrets(id)).map(each => ({ id: secretIdOf(each), createdAt: each.createdAt }))
    },

    async removeSecret(id, secretId, by = BY_COMMAND_LINE) {
      const isRemoved = await audit.perform(by, async tx => {
        const app = isAppId(id) ? await tx.apps.lock(id) : null
        const storedSecrets = app ? await tx.apps.datedSecrets(id) : []
        const storedSecret = storedSecrets.find(each => secretIdOf(each) === secretId)
        if (!storedSecret || !(await tx.apps.removeSecret(id, storedSecret.hash)))
          return withoutChanges(false)
        return auditedOutcome(true, appSecretRemoved(id, secretId))
      })
      if (!isRemoved) throw new KeywayError('not_found', 'There is no such secret of this app.')
    },

    async authenticate(id, secret) {
      const presentedHash = sha256(secret)
      if (!isAppId(id)) return null
      const [app, acceptedHashes] = await Promise.all([apps.find(id), apps.secrets(id)])
      // Compares with all accepted hashes in constant time: timing reveals neither which one matched nor how closely.
      const isAccepted = acceptedHashes.map(hash => equals(hash, presentedHash)).includes(true)
      return isAccepted ? app : null
    },
  }

  async function find(id: string): Promise<App> {
    const app = isStorableId(id) ? await apps.find(id) : null
    if (!app) throw noSuchApp()
    return app
  }

  function assertValid(app: App): void {
    const problems = problemsWith(app)
    if (problems.length > 0) throw invalidRequest(problems)
  }

  function problemsWith(app: App) {
    const isReserved = ownAudiences.some(own => isSameUrl(own, app.audience))
    return [
      ...(isAppId(app.id) ? [] : [INVALID_ID]),
      ...problemsOf(app),
      ...(isReserved ? [RESERVED_AUDIENCE] : []),
    ]
  }

  /** Creates a signing key for each algorithm of the app's tokens that has none. Id tokens need a redirect URI. */
  async function ensureKeys(app: App): Promise<void> {
    await ensureKey(app.tokenAlg)
    if (app.redirectUris.length > 0) await ensureKey(app.idTokenAlg)
  }

  async function endSessionsAndGrantsOf(id: string): Promise<EndedByRemoval> {
    const attribution = { at: clock.now(), caller: null }
    const sessions = await inBatches(tx => tx.sessions.endSomeOfApp(id, REMOVAL_BATCH, attribution))
    const authorizations = await inBatches(tx =>
      tx.billing.withdrawSomeOfApp(id, attribution.at, REMOVAL_BATCH),
    )
    const consents = await inBatches(tx => tx.consents.withdrawSomeOfApp(id, REMOVAL_BATCH, attribution.at))
    return { sessions, authorizations, consents }
  }

  async function inBatches(end: (tx: Transaction) => Promise<readonly unknown[]>): Promise<number> {
    let count = 0
    for (;;) {
      const endedRows = await storage.transaction(end)
      count += endedRows.length
      if (endedRows.length < REMOVAL_BATCH) return count
    }
  }
}

/** Whether the text may be the id of a stored app: clients that describe themselves at a URL have the URL as their id. */
function isStorableId(text: string): boolean {
  return isAppId(text) || isClientUrl(text)
}

function authenticatesBySecret(app: App): boolean {
  return !app.isPublic && app.jwksUri === null
}

async function isAudienceTaken(tx: Transaction, { id, audience }: App): Promise<boolean> {
  if (audience === null) return false
  // Locks the row of an app that always exists, so that of two apps with one audience the later one sees the earlier.
  await tx.apps.lock(DEFAULT_APP_ID)
  const otherApp = await tx.apps.findByAudience(audience)
  return otherApp !== null && otherApp.id !== id
}

/**
 * Whether the audience is this URL, apart from trailing slashes and the letter case of the host: no app may register an
 * audience that looks like this service's.
 */
function isSameUrl(own: string, audience: string | null): boolean {
  const normalize = (text: string) => {
    const { origin, pathname } = new URL(text)
    let end = pathname.length
    while (pathname[end - 1] === '/') end--
    return origin + pathname.slice(0, end)
  }
  return audience !== null && URL.canParse(audience) && normalize(own) === normalize(audience)
}

const INVALID_ID = { field: 'id', message: 'must be 1 to 64 of a-z 0-9 . _ -, for example "shop"' }
const RESERVED_AUDIENCE = {
  field: 'audience',
  message:
    'is the audience of this service\'s own tokens; use the URL of the app\'s own service, for example "https://shop.example.com"',
}

function alreadyTaken(field: 'id' | 'audience'): KeywayError {
  return invalidRequest([{ field, message: 'belongs to a registered app already' }])
}

function noSuchApp(): KeywayError {
  return new KeywayError('not_found', 'No app with this id is registered.')
}

function describesItself(): KeywayError {
  return new KeywayError(
    'forbidden',
    'This app describes itself: its settings and keys come from the document at the URL that is its id.',
  )
}

function publicClientHasNoSecret(): KeywayError {
  return invalidRequest([
    { field: 'id', message: 'is that of a public client, which has no secret; make it confidential first' },
  ])
}

function wrongSecretToRemove(): KeywayError {
  const message = 'is not the secret that a new one replaces now: the secrets were changed meanwhile'
  return invalidRequest([{ field: 'removes', message }])
}

function cannotRemoveOwnApp(id: string): KeywayError {
  return new KeywayError(
    'forbidden',
    `${id} is one of this service's own apps, under which people sign in and connect. It cannot be removed.`,
  )
}
