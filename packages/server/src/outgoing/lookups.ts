import type { LookupAddress, LookupOptions, lookup } from 'node:dns'

/** Who provided a URL: an administrator, or a client in its own metadata, which any stranger may write. */
export type NamedBy = 'operator' | 'client'

/**
 * Maximum number of concurrent look-ups. Each occupies one of the four threads of libuv, which signing and database
 * look-ups need too, until the name server answers, even longer than the call itself. Names from strangers have a
 * separate limit, so that they do not delay webhooks.
 */
const MAX_LOOKUPS: Record<NamedBy, number> = { operator: 2, client: 1 }

type Found = (error: Error | null, addresses?: LookupAddress[]) => void

/** Looks a name up for a call; fails with "too late" if all calls to it have ended before. */
export type LookUp = (name: string, options: LookupOptions, isOver: () => boolean, found: Found) => void

interface Asked {
  isOver(): boolean
  found: Found
}

const lanes: Record<NamedBy, { lookups: number; waiting: (() => void)[] }> = {
  operator: { lookups: 0, waiting: [] },
  client: { lookups: 0, waiting: [] },
}

/** Shares one look-up among concurrent calls to a name, so that an unresponsive name server delays no other names. */
export function createLookups(resolve: typeof lookup): Record<NamedBy, LookUp> {
  return { operator: createLookUp(resolve, 'operator'), client: createLookUp(resolve, 'client') }
}

function createLookUp(resolve: typeof lookup, namedBy: NamedBy): LookUp {
  const pending = new Map<string, Asked[]>()

  return (name, options, isOver, found) => {
    const asked = pending.get(name)
    if (asked) return void asked.push({ isOver, found })
    const calls = [{ isOver, found }]
    pending.set(name, calls)
    const settle: Found = (error, addresses) => {
      pending.delete(name)
      for (const call of calls) call.found(error, addresses)
    }
    inTurn(
      namedBy,
      done =>
        calls.every(call => call.isOver())
          ? done(new Error('too late'))
          : resolve(name, { ...options, all: true }, (error, addresses) => done(error, addresses)),
      settle,
    )
  }
}

function inTurn(namedBy: NamedBy, run: (done: Found) => void, done: Found): void {
  const lane = lanes[namedBy]
  const begin = () => {
    lane.lookups++
    run((...result) => {
      lane.lookups--
      lane.waiting.shift()?.()
      done(...result)
    })
  }
  if (lane.lookups < MAX_LOOKUPS[namedBy]) begin()
  else lane.waiting.push(begin)
}
