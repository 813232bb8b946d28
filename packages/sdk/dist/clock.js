/** Timers overflow above 2^31-1 ms and would then fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
export const systemClock = {
    now: () => performance.now(),
    after(ms, callback) {
        const timer = setTimeout(callback, Math.min(Math.max(0, ms), LONGEST_TIMER_MS));
        return () => clearTimeout(timer);
    },
    random: () => Math.random(),
};
/** Waits `ms` milliseconds, or rejects with the signal's reason. */
export function pause(clock, ms, signal) {
    return new Promise((resolve, reject) => {
        if (signal?.aborted)
            return reject(signal.reason);
        const abort = () => {
            cancel();
            reject(signal?.reason);
        };
        const cancel = clock.after(ms, () => {
            signal?.removeEventListener('abort', abort);
            resolve();
        });
        signal?.addEventListener('abort', abort, { once: true });
    });
}
