/** A store in memory, the default. */
export function memoryTokenStore(tokens) {
    let held = tokens;
    return {
        get: () => held,
        set: next => {
            held = next;
        },
        delete: () => {
            held = undefined;
        },
    };
}
