/** Why an attempt to deliver failed that was aborted because the node stops, as logs and lists of attempts show it. */
export const INTERRUPTED = 'the service is stopping'

const interruption = new Error(INTERRUPTED)

/** Aborts an attempt to deliver because the node stops. */
export function interrupt(abort: AbortController): void {
  abort.abort(interruption)
}

/**
 * Whether the attempt was aborted because the node stops. That says nothing about the recipient, so such an attempt is
 * never the last one.
 */
export function isInterrupted(signal: AbortSignal | undefined): boolean {
  return signal?.reason === interruption
}
