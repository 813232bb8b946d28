import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { nextRefill, type Quota } from './limit.ts'
import type { QuotaStore } from './quota-store.ts'

/**
 * The fraction of a quota that a node leases at once; more if one request needs more, and at least one call. If the
 * node crashes, these calls are lost until the next refill.
 */
const BLOCK_FRACTION = 1 / 100
/** How long this node waits before it tries to lease from an exhausted quota again. */
const LEASE_PAUSE = SECOND
/** A block of leased calls that was unused for this time is given back. */
const IDLE_AFTER = 30 * SECOND
/** Maximum number of blocks in memory; beyond it those whose last lease is the oldest are given back. */
const MAX_BLOCKS = 50_000

export interface Quotas {
  /**
   * Consumes calls of all quotas, or of none.
   *
   * @throws KeywayError `quota_exhausted`, with `retryAfter` where it refills
   */
  take(quotas: readonly Quota[], count: number): void | Promise<void>
  /** Gives back calls that `take` has just consumed. */
  undo(quotas: readonly Quota[], count: number): void
  /** The remaining calls known to this node, if it has leased a block; else null. */
  knownRemaining(quota: Quota): number | null
  /** The remaining calls by quota id: those in the database plus those that this node has leased. */
  remaining(quotas: readonly Quota[]): Promise<Map<string, number>>
  /** Called periodically: gives back unused blocks. */
  sweep(): Promise<void>
  /** Called at shutdown: gives back all blocks. */
  giveBackAll(): Promise<void>
}

/** Calls of one quota that this node has leased. */
interface Block {
  left: number
  /** Calls that remained in the database's row of the quota after the last lease; null if nothing was leased. */
  stored: number | null
  /** When the quota is refilled, which ends the block; null if it never is, or if nothing was leased. */
  refillsAt: Instant | null
  usedAt: Instant
  pendingLease: Promise<void> | null
  /** The last failed lease. Until `until`, no lease of `count` or more calls is tried. */
  failedLease: { until: Instant; count: number }
}

/** Enforces quotas over all nodes: a node consumes from blocks, each leased by one conditional update. */
export function createQuotas({
  clock,
  store,
  maxBlocks = MAX_BLOCKS,
}: {
  clock: Pick<Clock, 'now'>
  store: QuotaStore
  maxBlocks?: number
}): Quotas {
  /** The leased blocks, by the id of the quota. */
  const blocks = new Map<string, Block>()

  return {
    take(quotas, count) {
      if (quotas.every(quota => isEnough(blockOf(quota), count))) return consume(quotas, count)
      return takeWithLeases(quotas, count)
    },
    undo(quotas, count) {
      for (const quota of quotas) blockOf(quota).left += count
    },
    knownRemaining(quota) {
      const block = blockOf(quota)
      return block.stored === null ? null : block.left + block.stored
    },
    async remaining(quotas) {
      const now = clock.now()
      const remainingCalls = await store.remaining(
        quotas.map(({ id }) => id),
        now,
      )
      for (const [id, left] of remainingCalls) {
        const block = blocks.get(id)
        if (block && !isExpired(block, now)) remainingCalls.set(id, left + block.left)
      }
      return remainingCalls
    },
    async sweep() {
      const now = clock.now()
      for (const [id, block] of blocks) if (now - block.usedAt >= IDLE_AFTER) await giveBack(id, block)
    },
    async giveBackAll() {
      for (const [id, block] of blocks) await giveBack(id, block)
    },
  }

  function blockOf({ id }: Quota): Block {
    let block = blocks.get(id)
    const now = clock.now()
    if (!block) {
      block = {
        left: 0,
        stored: null,
        refillsAt: null,
        usedAt: now,
        pendingLease: null,
        failedLease: { until: 0, count: 0 },
      }
      blocks.set(id, block)
    }
    if (isExpired(block, now)) {
      block.left = 0
      block.stored = null
      block.refillsAt = null
      block.failedLease.until = 0
    }
    return block
  }

  function isEnough(block: Block, count: number): boolean {
    return block.left >= count
  }

  function consume(quotas: readonly Quota[], count: number): void {
    const now = clock.now()
    for (const quota of quotas) {
      const block = blockOf(quota)
      block.left -= count
      block.usedAt = now
    }
  }

  async function takeWithLeases(quotas: readonly Quota[], count: number): Promise<void> {
    await giveBackSurplus()
    for (;;) {
      const insufficientQuotas = quotas.filter(quota => !isEnough(blockOf(quota), count))
      if (insufficientQuotas.length === 0) return consume(quotas, count)
      for (const quota of insufficientQuotas) await leaseFor(quota, count)
    }
  }

  /**
   * Leases missing calls, or awaits a pending lease. The caller must check the block again: other requests may have
   * consumed the calls, and a pending lease may have failed. @throws KeywayError `quota_exhausted`
   */
  async function leaseFor(quota: Quota, count: number): Promise<void> {
    const block = blockOf(quota)
    block.usedAt = clock.now()
    if (block.pendingLease) return block.pendingLease.catch(() => {})
    const missingCount = count - block.left
    if (missingCount <= 0) return
    if (clock.now() < block.failedLease.until && missingCount >= block.failedLease.count)
      throw quotaExhausted(quota, block)
    // The map is in the order of the last leases, since those beyond `maxBlocks` are given back in that order.
    blocks.delete(quota.id)
    blocks.set(quota.id, block)
    block.pendingLease = lease(quota, block, missingCount).finally(() => {
      block.pendingLease = null
    })
    await block.pendingLease
  }

  async function lease(quota: Quota, block: Block, missingCount: number): Promise<void> {
    const now = clock.now()
    const size = Math.max(1, Math.floor(sizeOf(quota) * BLOCK_FRACTION))
    const newLease = await store.lease(quota, missingCount, Math.max(missingCount, size), now)
    if (!newLease) {
      block.failedLease = { until: clock.now() + LEASE_PAUSE, count: missingCount }
      throw quotaExhausted(quota, block)
    }
    // If the quota was refilled since the last lease, the calls left of that lease have expired.
    if (block.refillsAt !== newLease.refillsAt) block.left = 0
    block.refillsAt = newLease.refillsAt
    block.left += newLease.count
    block.stored = newLease.remaining
    block.failedLease.until = 0
  }

  function quotaExhausted(quota: Quota, block: Block): KeywayError {
    const now = clock.now()
    const refillsAt = quota.refill && (block.refillsAt ?? nextRefill(quota.refill.every, now))
    const retryAfter = refillsAt === null ? undefined : Math.max(1, Math.ceil((refillsAt - now) / SECOND))
    const detail =
      retryAfter === undefined
        ? 'The quota of this key is used up. Its owner can give it more.'
        : `The quota of this key is used up. It is refilled in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
    return new KeywayError('quota_exhausted', detail, { retryAfter })
  }

  async function giveBack(id: string, block: Block): Promise<void> {
    if (block.pendingLease) return
    const { left, refillsAt } = block
    blocks.delete(id)
    const now = clock.now()
    if (left > 0 && !isExpired(block, now)) await store.giveBack(id, left, refillsAt, now)
  }

  /** Gives back the blocks beyond `maxBlocks`, except those whose lease is pending. */
  async function giveBackSurplus(): Promise<void> {
    for (const [id, block] of blocks) {
      if (blocks.size <= maxBlocks) return
      await giveBack(id, block)
    }
  }
}

function isExpired({ refillsAt }: Block, now: Instant): boolean {
  return refillsAt !== null && refillsAt <= now
}

function sizeOf({ granted, refill }: Quota): number {
  return Math.max(granted, refill?.amount ?? 0)
}
