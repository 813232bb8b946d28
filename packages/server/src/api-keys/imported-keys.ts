import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import type { Log } from '../log.ts'
import { createReloading, type Reloading } from '../reloading.ts'
import type { Storage } from '../store.ts'

/** Maximum length of a text that is looked up as an imported key, in characters. */
const MAX_IMPORTED_KEY_LENGTH = 512
/** Beginnings of refresh tokens, app secrets and JSON Web Tokens, which are never looked up as imported keys. */
const OTHER_CREDENTIAL = /^(?:svr_|sva_|eyJ[\w-]*\.[\w-]*\.)/

/**
 * Remembers whether imported keys exist, revoked ones included. While none exist, a credential that does not have the
 * format of this service's own keys is refused without a database read.
 */
export interface ImportedKeys extends Reloading {
  load(): Promise<void>
  mayBeKey(text: string): boolean
}

export function createImportedKeys({
  storage,
  log,
  reloadInterval,
}: {
  storage: Storage
  log: Log
  reloadInterval?: number
}): ImportedKeys {
  let anyExist = false

  return {
    load,

    ...createReloading({
      storage,
      log,
      interval: reloadInterval,
      on: 'api_keys.imported',
      reload: load,
      failure: 'the existence of imported keys could not be read',
    }),

    mayBeKey: text => isOwnFormat(text) || (anyExist && couldBeImported(text)),
  }

  async function load(): Promise<void> {
    anyExist = await storage.store.apiKeys.hasImported()
  }
}

/**
 * Whether the text has the format of this service's keys. A key has exactly one text form: neither case nor space
 * varies.
 */
function isOwnFormat(text: unknown): boolean {
  return typeof text === 'string' && API_KEY_PATTERN.test(text)
}

/** Whether the text could be a key of another system. The length is limited, since the look-up hashes the text. */
function couldBeImported(text: unknown): boolean {
  return (
    typeof text === 'string' &&
    text.length > 0 &&
    text.length <= MAX_IMPORTED_KEY_LENGTH &&
    !OTHER_CREDENTIAL.test(text)
  )
}
