import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import type { Log } from '../log.ts'
import { createReloading, type Reloading } from '../reloading.ts'
import type { Storage } from '../store.ts'

const MAX_FOREIGN_LENGTH = 512
/** Prefixes of our other credentials, and the beginning of a JSON Web Token. */
const NO_KEY = /^(?:svr_|sva_|eyJ[\w-]*\.[\w-]*\.)/

/**
 * Whether imported keys exist, revoked ones included. While none does, a credential that is not one of our keys is
 * refused without a database read.
 */
export interface ImportedKeys extends Reloading {
  load(): Promise<void>
  /** Whether the text may be a key, and is worth a look-up. */
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
  let exist = false

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

    mayBeKey: text => isKeyOfOurs(text) || (exist && isForeign(text)),
  }

  async function load(): Promise<void> {
    exist = await storage.store.apiKeys.hasImported()
  }
}

/** No trimming, no case folding: a key has exactly one text form. */
function isKeyOfOurs(text: unknown): boolean {
  return typeof text === 'string' && API_KEY_PATTERN.test(text)
}

/** Whether it could be a key of another system. Checks the length before the text is hashed. */
function isForeign(text: unknown): boolean {
  return (
    typeof text === 'string' && text.length > 0 && text.length <= MAX_FOREIGN_LENGTH && !NO_KEY.test(text)
  )
}
