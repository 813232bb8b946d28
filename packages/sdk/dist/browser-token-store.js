import { KeywayError } from './errors.js';
import { createMutex } from './mutex.js';
import { parseTokens } from './token-store.js';
import { webLocks } from './web-locks.js';
/**
 * A store in `localStorage`, shared by all tabs of an origin; Web Locks let one tab at a time refresh. Browsers
 * have them on https and on localhost only; without them tabs may refresh concurrently. Scripts of the origin can read
 * the store, so where a server renders the pages `cookieTokenStores` is safer. There is no store in `sessionStorage`: a
 * duplicated tab would copy it, and with it the refresh token.
 *
 * @throws KeywayError `invalid_configuration` where there is no `localStorage`, or the browser blocks it
 */
export function browserTokenStore({ name = 'keyway' } = {}) {
    const storage = openStorage();
    const locks = webLocks();
    const read = (text) => (text === null ? undefined : parseTokens(text));
    return {
        get: () => read(storage.getItem(name)),
        set: tokens => storage.setItem(name, JSON.stringify(tokens)),
        delete: () => storage.removeItem(name),
        exclusive: locks ? work => locks.request(`keyway-tokens ${name}`, work) : createMutex(),
        onChange(listener) {
            // `key` is null when all items were removed.
            const onStorageEvent = ({ key, newValue, storageArea }) => {
                if (storageArea === storage && (key === name || key === null))
                    listener(read(newValue));
            };
            addEventListener('storage', onStorageEvent);
            return () => removeEventListener('storage', onStorageEvent);
        },
    };
}
/** Reading `globalThis.localStorage` throws where cookies and site data are blocked. */
function openStorage() {
    try {
        const { localStorage } = globalThis;
        if (localStorage)
            return localStorage;
    }
    catch { }
    const advice = 'There is no localStorage here, or the browser blocks it: use memoryTokenStore().';
    throw new KeywayError('invalid_configuration', advice);
}
