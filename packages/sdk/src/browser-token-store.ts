import { KeywayError } from './errors.ts'
import { createMutex } from './mutex.ts'
import { parseTokens, type StoredTokens, type TokenStore } from './token-store.ts'
import { webLocks } from './web-locks.ts'

export interface BrowserTokenStore extends TokenStore {
  /**
   * Calls the listener with the stored tokens after another tab has changed them: by a sign-in, when it begins or ends
   * a refresh, or with undefined by a sign-out. Returns a function that removes the listener.
   */
  onChange(listener: (tokens: StoredTokens | undefined) => void): () => void
}

export interface BrowserTokenStoreOptions {
  /** The item of localStorage. Default `keyway`. */
  name?: string | undefined
}

/**
 * A store in `localStorage`, shared by all tabs of an origin; Web Locks let one tab at a time refresh. Browsers
 * have them on https and on localhost only; without them tabs may refresh concurrently. Scripts of the origin can read
 * the store, so where a server renders the pages `cookieTokenStores` is safer. There is no store in `sessionStorage`: a
 * duplicated tab would copy it, and with it the refresh token.
 *
 * @throws KeywayError `invalid_configuration` where there is no `localStorage`, or the browser blocks it
 */
export function browserTokenStore({ name = 'keyway' }: BrowserTokenStoreOptions = {}): BrowserTokenStore {
  const storage = openStorage()
  const locks = webLocks()
  const read = (text: string | null) => (text === null ? undefined : parseTokens(text))
  return {
    get: () => read(storage.getItem(name)),
    set: tokens => storage.setItem(name, JSON.stringify(tokens)),
    delete: () => storage.removeItem(name),
    exclusive: locks ? work => locks.request(`keyway-tokens ${name}`, work) : createMutex(),
    onChange(listener) {
      // `key` is null when all items were removed.
      const onStorageEvent = ({ key, newValue, storageArea }: StorageEvent) => {
        if (storageArea === storage && (key === name || key === null)) listener(read(newValue))
      }
      addEventListener('storage', onStorageEvent)
      return () => removeEventListener('storage', onStorageEvent)
    },
  }
}

/** Reading `globalThis.localStorage` throws where cookies and site data are blocked. */
function openStorage(): Storage {
  try {
    const { localStorage } = globalThis as { localStorage?: Storage }
    if (localStorage) return localStorage
  } catch {}
  const advice = 'There is no localStorage here, or the browser blocks it: use memoryTokenStore().'
  throw new KeywayError('invalid_configuration', advice)
}
