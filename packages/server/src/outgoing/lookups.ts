import type { LookupAddress, LookupOptions, lookup } from 'node:dns'

/** Who provided a URL: an administrator, or a client in its own metadata, which any stranger may write. */
export type UrlProvider = 'operator' | 'client'

/**
 * Maximum number of concurrent look-ups. Each occupies one of libuv's four threads until the name server answers, even
 * if the call to the URL has timed out before. Signing tokens and resolving the database's name need these threads too.
 * Names from strangers have a separate limit, so that they do not delay webhooks.
 */
const MAX_LOOKUPS: Record<UrlProvider, number> = { operator: 2, client: 1 }

type LookUpCallback = (error: Error | null, addresses?: LookupAddress[]) => void

/** Looks a name up for a call. Fails if all calls that wait for the name have ended before the look-up could start. */
export type LookUp = (
  name: string,
  options: LookupOptions,
  hasEnded: () => boolean,
  callback: LookUpCallback,
) => void

/** A call to a URL that waits for the address of its host. */
interface WaitingCall {
  hasEnded(): boolean
  callback: LookUpCallback
}

/** The number of running look-ups, and those that wait until fewer run. */
const queues: Record<UrlProvider, { running: number; waiting: (() => void)[] }> = {
  operator: { running: 0, waiting: [] },
  client: { running: 0, waiting: [] },
}

/**
 * Concurrent calls to a name share one look-up: otherwise the calls to one name whose name server does not answer would
 * occupy all of the MAX_LOOKUPS, and delay other names.
 */
export function createLookups(resolve: typeof lookup): Record<UrlProvider, LookUp> {
  return { operator: createLookUp(resolve, 'operator'), client: createLookUp(resolve, 'client') }
}

function createLookUp(resolve: typeof lookup, urlProvider: UrlProvider): LookUp {
  const callsByName = new Map<string, WaitingCall[]>()

  return (name, options, hasEnded, callback) => {
    const waitingCalls = callsByName.get(name)
    if (waitingCalls) return void waitingCalls.push({ hasEnded, callback })
    const calls = [{ hasEnded, callback }]
    callsByName.set(name, calls)
    const finish: LookUpCallback = (error, addresses) => {
      callsByName.delete(name)
      for (const call of calls) call.callback(error, addresses)
    }
    runLimited(
      urlProvider,
      done =>
        calls.every(call => call.hasEnded())
          ? done(new Error('all calls to the name ended before its look-up started'))
          : resolve(name, { ...options, all: true }, (error, addresses) => done(error, addresses)),
      finish,
    )
  }
}

/** Runs a look-up as soon as fewer than MAX_LOOKUPS run. */
function runLimited(
  urlProvider: UrlProvider,
  run: (done: LookUpCallback) => void,
  done: LookUpCallback,
): void {
  const queue = queues[urlProvider]
  const start = () => {
    queue.running++
    run((...result) => {
      queue.running--
      queue.waiting.shift()?.()
      done(...result)
    })
  }
  if (queue.running < MAX_LOOKUPS[urlProvider]) start()
  else queue.waiting.push(start)
}
