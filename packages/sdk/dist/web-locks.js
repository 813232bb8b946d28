/** The Web Locks of the platform; undefined if it has none. Browsers have them on https and localhost only. */
export function webLocks() {
    return globalThis.navigator?.locks;
}
