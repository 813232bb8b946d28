import type { Clock } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { equals, randomToken, sha256 } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { type App, isAppId } from './app.ts'

const APP_SECRET_BYTES = 32

export interface NewApp {
  id: string
  name: string
  audience: string | null
  verifyUrl: string | null
}

export interface Apps {
  list(): Promise<App[]>
  /** @throws KeywayError `invalid_request` (no app id, or one that is taken) */
  register(wanted: NewApp): Promise<App>
  /** A new secret, told once. The one before it keeps working, so that it can be changed while serving. @throws KeywayError `not_found` */
  newSecret(id: string): Promise<string>
  /** The registered app whose secret this is, or null. Constant time. */
  authenticate(id: string, secret: string): Promise<App | null>
}

export function createApps({ storage, clock }: { storage: Storage; clock: Clock }): Apps {
  const { store } = storage
  return {
    list: () => store.apps.list(),

    async register(wanted) {
      if (!isAppId(wanted.id))
        throw invalidRequest([
          { field: 'id', message: 'must be 1 to 64 of a-z 0-9 . _ - and begin with a letter or digit' },
        ])
      const app: App = { ...wanted, firstParty: false, createdAt: clock.now() }
      const added = await storage.transaction(tx => tx.apps.insert(app))
      if (!added) throw invalidRequest([{ field: 'id', message: `is taken: there is an app ${app.id}` }])
      return app
    },

    async newSecret(id) {
      const secret = randomToken(APP_SECRET_BYTES)
      const found = await storage.transaction(async tx => {
        const app = await tx.apps.find(id)
        if (app) await tx.apps.addSecret(id, sha256(secret), clock.now())
        return app !== null
      })
      if (!found) throw new KeywayError('not_found', `There is no app ${id}. Add it: keyway apps add ${id}`)
      return secret
    },

    async authenticate(id, secret) {
      if (!isAppId(id)) return null
      const given = sha256(secret)
      const accepted = await store.apps.secrets(id)
      return accepted.some(hash => equals(hash, given)) ? store.apps.find(id) : null
    },
  }
}
