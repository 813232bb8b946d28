import { createMutex } from './mutex.js';
/** A store in memory, the default. */
export function memoryTokenStore(tokens) {
    let current = tokens;
    return {
        get: () => current,
        set: next => {
            current = next;
        },
        delete: () => {
            current = undefined;
        },
        exclusive: createMutex(),
    };
}
/** Parses tokens that `JSON.stringify` wrote; undefined for any other text. */
export function parseTokens(text) {
    try {
        const { access, refresh, sessionId, refreshKey } = JSON.parse(text);
        const isComplete = [access, refresh, sessionId].every(value => typeof value === 'string' && value !== '');
        if (!isComplete || !['string', 'undefined'].includes(typeof refreshKey))
            return undefined;
        const tokens = { access: access, refresh: refresh, sessionId: sessionId };
        return refreshKey === undefined ? tokens : { ...tokens, refreshKey };
    }
    catch {
        return undefined;
    }
}
