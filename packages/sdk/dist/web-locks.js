/** The Web Locks of the platform. Browsers have them on https and localhost only. */
export function webLocks() {
    return globalThis.navigator?.locks;
}
