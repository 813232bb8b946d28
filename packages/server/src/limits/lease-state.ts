import { type Instant, SECOND } from '../clock.ts'
import type { TimedCount } from '../sliding-count.ts'
import { type RequestWindow, WINDOW_MS } from './limit.ts'

/**
 * The shared state of one subject (a person, or a key with its successors by rotation): for each window how many
 * requests each node may have let through within it. A node lets requests through up to its share without reading the
 * database; together the shares are at most the limit.
 */

/**
 * A holder (a node with shares) is dead once its lease, without which it may not use them, ended this long ago: longer
 * than the clocks of two nodes may differ.
 */
export const HOLDER_MARGIN = 2 * SECOND
/** Number of time slots into which the requests of a window are merged before they are stored. */
const STORED_SLOTS = 12

export interface SharedState {
  /** The shares of nodes, by the id that each process creates for itself (`holderId` in request-limits.ts). */
  holders: Record<string, NodeShares>
  /** Requests that were let through by nodes that have no share any more. */
  past: PartialWindows<TimedCount[]>
}

type PartialWindows<Value> = { [Window in RequestWindow]?: Value }
type NodeShares = PartialWindows<WindowShare>

interface WindowShare {
  /** The maximum number of requests that the node may have let through within any period of the window's length. */
  held: number
  /** The requests that the node had let through when it wrote this share. */
  counted: TimedCount[]
}

export const EMPTY_STATE: SharedState = { holders: {}, past: {} }

/** The share of one window that a node claims. */
export interface WindowClaim {
  per: RequestWindow
  limit: number
  /** The requests that this node has let through within the window. */
  counted: readonly TimedCount[]
  wanted: number
}

/** The answer to a `WindowClaim`: how the window is then shared between the node and all others. */
export interface WindowGrant {
  per: RequestWindow
  /** The limit of the window at the time of the claim. */
  limit: number
  /** The granted share: the maximum number of requests that the node may let through within the window. */
  held: number
  /** The sum of other nodes' shares, and of requests of nodes that have no share any more. */
  usedByOthers: number
  /** Time of the oldest known request that counts in `usedByOthers`; null if there is none. */
  oldestOfOthers: Instant | null
}

/**
 * Whether the node has a share in the state. A node whose lease ended loses its share: another node moves its requests
 * to `past` (`withoutDeadHolders`).
 */
export function isHolder(state: SharedState, holder: string): boolean {
  return Object.hasOwn(state.holders, holder)
}

/**
 * The state after `holder` claimed shares: it gets as much of them as other nodes leave free. Requests that it let
 * through count in any case, even beyond a limit that was lowered since.
 */
export function claim(
  state: SharedState,
  holder: string,
  claims: readonly WindowClaim[],
  now: Instant,
): { state: SharedState; grants: WindowGrant[] } {
  const { [holder]: _, ...otherHolders } = state.holders
  const ownShares: NodeShares = {}
  const grants = claims.map(({ per, limit, counted, wanted }) => {
    const pastRequests = entriesWithin(state.past[per] ?? [], per, now)
    const countedByOthers = Object.values(otherHolders).flatMap(shares =>
      entriesWithin(shares[per]?.counted ?? [], per, now),
    )
    const ownCount = sum(counted)
    const usedByOthers =
      sum(pastRequests) +
      Object.values(otherHolders).reduce((most, shares) => most + (shares[per]?.held ?? 0), 0)
    const held = Math.max(0, Math.min(wanted, limit - usedByOthers))
    ownShares[per] = { held: Math.max(held, ownCount), counted: compact(counted, per) }
    const oldestAt = [...pastRequests, ...countedByOthers].reduce(
      (least, [at]) => Math.min(least, at),
      Number.POSITIVE_INFINITY,
    )
    return { per, limit, held, usedByOthers, oldestOfOthers: Number.isFinite(oldestAt) ? oldestAt : null }
  })
  return {
    state: { holders: { ...otherHolders, [holder]: ownShares }, past: pastWithin(state.past, now) },
    grants,
  }
}

/** The state after `holder` released its shares. The requests that it let through, `counted`, are added to `past`. */
export function release(
  state: SharedState,
  holder: string,
  counted: PartialWindows<readonly TimedCount[]>,
  now: Instant,
): SharedState {
  const { [holder]: _, ...holders } = state.holders
  return { holders, past: pastWithin(mergeWindows(state.past, counted), now) }
}

/**
 * The state without dead holders, which can no longer use their shares, since their leases ended at the instants in
 * `leaseEnds`. The part of a share that such a node had not used when it last wrote counts as used at the end of its
 * lease, the latest possible time.
 */
export function withoutDeadHolders(
  state: SharedState,
  leaseEnds: ReadonlyMap<string, Instant>,
  now: Instant,
): SharedState {
  let { past } = state
  const holders = { ...state.holders }
  for (const [holder, leaseEnd] of leaseEnds) {
    if (!Object.hasOwn(holders, holder)) continue
    for (const [per, { held, counted }] of entriesOf(holders[holder]!)) {
      const unreportedCount = held - sum(entriesWithin(counted, per, leaseEnd))
      past = mergeWindows(past, {
        [per]: unreportedCount > 0 ? [...counted, [leaseEnd, unreportedCount] as const] : counted,
      })
    }
    delete holders[holder]
  }
  return { holders, past: pastWithin(past, now) }
}

/**
 * The time from which on nothing in the state counts, if no holder writes again.
 *
 * @param leaseEnd when the leases of all holders have ended
 */
export function obsoleteFrom({ holders, past }: SharedState, leaseEnd: Instant): Instant {
  const pastEnds = entriesOf(past).flatMap(([per, counted]) => counted.map(([at]) => at + WINDOW_MS[per]))
  const holderEnds = Object.values(holders).flatMap(shares =>
    entriesOf(shares).map(([per]) => leaseEnd + HOLDER_MARGIN + WINDOW_MS[per]),
  )
  return Math.max(0, ...pastEnds, ...holderEnds)
}

function pastWithin(past: SharedState['past'], now: Instant): SharedState['past'] {
  const prunedPast: SharedState['past'] = {}
  for (const [per, counted] of entriesOf(past)) {
    const entries = entriesWithin(counted, per, now)
    if (entries.length > 0) prunedPast[per] = compact(entries, per)
  }
  return prunedPast
}

function mergeWindows(
  past: SharedState['past'],
  more: PartialWindows<readonly TimedCount[]>,
): SharedState['past'] {
  const windows = { ...past }
  for (const [per, counted] of entriesOf(more)) windows[per] = [...(windows[per] ?? []), ...counted]
  return windows
}

/** Merges the entries of each time slot into one with their latest instant, so that no entry expires too early. */
function compact(counted: readonly TimedCount[], per: RequestWindow): TimedCount[] {
  const slotLength = WINDOW_MS[per] / STORED_SLOTS
  const slots = new Map<number, TimedCount>()
  for (const [at, count] of counted) {
    const slot = Math.floor(at / slotLength)
    const [latest, total] = slots.get(slot) ?? [at, 0]
    slots.set(slot, [Math.max(latest, at), total + count])
  }
  return [...slots.values()].sort(([left], [right]) => left - right)
}

function entriesWithin(counted: readonly TimedCount[], per: RequestWindow, now: Instant): TimedCount[] {
  return counted.filter(([at]) => at > now - WINDOW_MS[per])
}

function sum(counted: readonly TimedCount[]): number {
  return counted.reduce((total, [, count]) => total + count, 0)
}

function entriesOf<Value>(windows: PartialWindows<Value>): [RequestWindow, Value][] {
  return Object.entries(windows) as [RequestWindow, Value][]
}
