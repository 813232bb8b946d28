import type { LookupAddress, LookupOptions, lookup } from 'node:dns'

/** Whose URL is called: one of an administrator, or one that a client gave about itself, as any stranger may. */
export type NamedBy = 'operator' | 'client'

/**
 * Look-ups of this process at once. Each occupies one of the four threads on which signatures and look-ups of the database wait
 * too, for as long as the name server is silent: longer than the call itself. Names of strangers have a place of their own,
 * so that they hold up no webhook.
 */
const MAX_LOOKUPS: Record<NamedBy, number> = { operator: 2, client: 1 }

type Found = (error: Error | null, addresses?: LookupAddress[]) => void

/** Looks a name up for a call, or says "too late" if all calls to it were over first. */
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
