/** A minimal typed event emitter. Listeners are called in the order of registration. */
export class Emitter {
    #listeners = new Map();
    on(name, listener) {
        const listeners = this.#listeners.get(name) ?? new Set();
        this.#listeners.set(name, listeners.add(listener));
        return this;
    }
    off(name, listener) {
        this.#listeners.get(name)?.delete(listener);
        return this;
    }
    once(name, listener) {
        const onceListener = event => {
            this.off(name, onceListener);
            listener(event);
        };
        return this.on(name, onceListener);
    }
    /** @internal */
    listenerCount(name) {
        return this.#listeners.get(name)?.size ?? 0;
    }
    /** @internal A listener that throws stops neither the others nor the agent; its error is reported as uncaught. */
    emit(name, event) {
        for (const listener of [...(this.#listeners.get(name) ?? [])]) {
            try {
                ;
                listener(event);
            }
            catch (error) {
                queueMicrotask(() => {
                    throw error;
                });
            }
        }
    }
}
