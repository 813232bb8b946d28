import type { Clock } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { isLoopbackHost } from '../network.ts'
import { equals, randomToken, sha256 } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { type App, isAppId, type LiveCredentials } from './app.ts'

/** Prefix of app secrets, so that people and secret scanners recognise them. */
export const APP_SECRET_PREFIX = 'sva_'
const APP_SECRET_BYTES = 32
export const MAX_APP_NAME_LENGTH = 100
const MAX_URL_LENGTH = 2048

export interface NewApp {
  id: string
  name: string
  /** Audience of the agent tokens for its own services. */
  audience: string | null
  /** Its own page for sign-in links. */
  verifyUrl: string | null
  /** Whether its rights include keys and sessions created under its label before; false by default. */
  adopt?: boolean
}

export interface Apps {
  list(): Promise<App[]>
  /**
   * Registers an app. `older` counts the live keys and sessions that the label had before: the app has rights over them
   * only with `adopt`.
   *
   * @throws KeywayError `invalid_request`, also when the id or the audience is taken
   */
  register(wanted: NewApp): Promise<{ app: App; older: LiveCredentials }>
  /** Creates a secret, returned only here. The previous one stays valid. @throws KeywayError `not_found` */
  newSecret(id: string): Promise<string>
  /** The app with this id and secret, or null. */
  authenticate(id: string, secret: string): Promise<App | null>
}

/** @param ownAudiences the audiences of this service's own tokens, which no app may register */
export function createApps({
  storage,
  clock,
  ownAudiences = [],
}: {
  storage: Storage
  clock: Clock
  ownAudiences?: readonly string[]
}): Apps {
  const { apps } = storage.store

  return {
    list() {
      return apps.list()
    },

    async register(wanted) {
      assertValid(wanted)
      if (ownAudiences.some(own => isSameUrl(own, wanted.audience))) throw reservedAudience()
      const { adopt = false, ...described } = wanted
      const createdAt = clock.now()
      const app: App = { ...described, firstParty: false, createdAt, coversFrom: adopt ? 0 : createdAt }
      // Before the registration, so that a failure here does not leave an app registered without this report.
      const older = await apps.countLive(app.id, createdAt)
      const outcome = await storage.transaction(async tx => {
        if (app.audience !== null && (await tx.apps.findByAudience(app.audience))) return 'audience'
        return (await tx.apps.insert(app)) ? null : 'id'
      })
      if (outcome) throw invalidRequest([{ field: outcome, message: 'belongs to a registered app already' }])
      return { app, older }
    },

    async newSecret(id) {
      const secret = APP_SECRET_PREFIX + randomToken(APP_SECRET_BYTES)
      const app = await storage.transaction(async tx => {
        const found = await tx.apps.find(id)
        if (found) await tx.apps.addSecret(id, sha256(secret), clock.now())
        return found
      })
      if (!app) throw new KeywayError('not_found', 'No app with this id is registered.')
      return secret
    },

    async authenticate(id, secret) {
      const presented = sha256(secret)
      if (!isAppId(id)) return null
      const [app, accepted] = await Promise.all([apps.find(id), apps.secrets(id)])
      // Compares with all of them in constant time, so that timing reveals neither which one matched nor how closely.
      const matches = accepted.map(hash => equals(hash, presented)).includes(true)
      return matches ? app : null
    },
  }
}

function assertValid({ id, name, audience, verifyUrl }: NewApp): void {
  const errors = [
    !isAppId(id) && { field: 'id', message: 'must be 1 to 64 of a-z 0-9 . _ -, for example "shop"' },
    !isName(name) && { field: 'name', message: 'must be 1 to 100 characters without control characters' },
    !isAudience(audience) && {
      field: 'audience',
      message:
        'must be an http or https URL without credentials and fragment, for example "https://shop.example.com"',
    },
    !isPage(verifyUrl) && {
      field: 'verify_url',
      message: 'must be an https URL (http on loopback only), for example "https://shop.example.com/verify"',
    },
  ].filter(error => error !== false)
  if (errors.length > 0) throw invalidRequest(errors)
}

/**
 * Ignores trailing slashes and letter case of the host: no app may register an audience that looks like this
 * service's.
 */
function isSameUrl(own: string, audience: string | null): boolean {
  const normalize = (text: string) => {
    const { origin, pathname } = new URL(text)
    let end = pathname.length
    while (pathname[end - 1] === '/') end--
    return origin + pathname.slice(0, end)
  }
  return audience !== null && normalize(own) === normalize(audience)
}

function reservedAudience(): KeywayError {
  const message =
    'is the audience of this service\'s own tokens; use the URL of the app\'s own service, for example "https://shop.example.com"'
  return invalidRequest([{ field: 'audience', message }])
}

function isName(name: string): boolean {
  const isClean = name.isWellFormed() && !/\p{Cc}/u.test(name)
  return isClean && name.trim() !== '' && [...name].length <= MAX_APP_NAME_LENGTH
}

/** Stored as given, since requested audiences are compared as text. */
function isAudience(audience: string | null): boolean {
  return audience === null || parseUrl(audience) !== null
}

/** The page receives live tokens, so it must use TLS. */
function isPage(verifyUrl: string | null): boolean {
  if (verifyUrl === null) return true
  const url = parseUrl(verifyUrl)
  return url !== null && (url.protocol === 'https:' || isLoopbackHost(url.hostname))
}

function parseUrl(text: string): URL | null {
  if (text.length > MAX_URL_LENGTH || /[\s\p{Cc}]/u.test(text)) return null
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return null
  return url.username || url.password || url.hash ? null : url
}
