import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { nextRefill, type Quota } from './limit.ts'
import type { QuotaStore } from './quota-store.ts'

/** The part of a quota that a node leases at once, at least one call: what a crash loses until the next refill. */
const BLOCK = 1 / 100
/** How long a quota that had too little left is not asked for again by this node. */
const EXHAUSTED_FOR = SECOND
/** How long a block that nobody uses stays with this node. */
const IDLE_AFTER = 30 * SECOND
/** Blocks in memory; beyond it the oldest are given back. */
const MAX_BLOCKS = 50_000

export interface Quotas {
  /**
   * Consumes calls of all quotas, or of none.
   *
   * @throws KeywayError `quota_exhausted`, with `retryAfter` where it refills
   */
  take(quotas: readonly Quota[], count: number): void | Promise<void>
  /** Undoes a `take` of this moment. */
  undo(quotas: readonly Quota[], count: number): void
  /** What is left as far as this node knows, where it leased of it; null elsewhere. */
  known(quota: Quota): number | null
  /** What is left, by the ids of the quotas: stored and leased by this node. */
  left(quotas: readonly Quota[]): Promise<Map<string, number>>
  /** Periodic: gives back blocks that nobody uses. */
  sweep(): Promise<void>
  /** At shutdown. */
  giveBackAll(): Promise<void>
}

/** Calls of one quota that this node leased and that nobody has consumed. */
interface Block {
  left: number
  /** What was left of the quota after the last lease; null: nothing was leased. */
  stored: number | null
  /** When the quota is refilled, which ends the block; null: never. */
  refillsAt: Instant | null
  usedAt: Instant
  leasing: Promise<void> | null
  /** Until then a lease of as many calls, or more, is not tried. */
  exhausted: { until: Instant; count: number }
}

/** Never more than the quota on any number of nodes: a node consumes from blocks, each leased by one conditional update. */
export function createQuotas({ clock, store }: { clock: Pick<Clock, 'now'>; store: QuotaStore }): Quotas {
  const blocks = new Map<string, Block>()

  return {
    take(quotas, count) {
      if (quotas.every(quota => isEnough(blockOf(quota), count))) return consume(quotas, count)
      return takeWithLeases(quotas, count)
    },
    undo(quotas, count) {
      for (const quota of quotas) blockOf(quota).left += count
    },
    known(quota) {
      const block = blockOf(quota)
      return block.stored === null ? null : block.left + block.stored
    },
    async left(quotas) {
      const now = clock.now()
      const stored = await store.remaining(
        quotas.map(({ id }) => id),
        now,
      )
      for (const [id, left] of stored) {
        const block = blocks.get(id)
        if (block && !isOver(block, now)) stored.set(id, left + block.left)
      }
      return stored
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
        leasing: null,
        exhausted: { until: 0, count: 0 },
      }
      blocks.set(id, block)
    }
    if (isOver(block, now)) {
      block.left = 0
      block.stored = null
      block.refillsAt = null
      block.exhausted.until = 0
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
    await makeRoom()
    for (;;) {
      const short = quotas.filter(quota => !isEnough(blockOf(quota), count))
      if (short.length === 0) return consume(quotas, count)
      for (const quota of short) await leaseFor(quota, count)
    }
  }

  /** Returns when the block may be enough. @throws KeywayError `quota_exhausted` */
  async function leaseFor(quota: Quota, count: number): Promise<void> {
    const block = blockOf(quota)
    block.usedAt = clock.now()
    if (block.leasing) return block.leasing.catch(() => {})
    const lacking = count - block.left
    if (lacking <= 0) return
    if (clock.now() < block.exhausted.until && lacking >= block.exhausted.count) throw exhausted(quota, block)
    block.leasing = lease(quota, block, lacking).finally(() => {
      block.leasing = null
    })
    await block.leasing
  }

  async function lease(quota: Quota, block: Block, lacking: number): Promise<void> {
    const now = clock.now()
    const size = Math.max(1, Math.floor(sizeOf(quota) * BLOCK))
    const leased = await store.lease(quota, lacking, Math.max(lacking, size), now)
    if (!leased) {
      block.exhausted = { until: clock.now() + EXHAUSTED_FOR, count: lacking }
      throw exhausted(quota, block)
    }
    // Of a period that ended meanwhile nothing is left.
    if (block.refillsAt !== leased.refillsAt) block.left = 0
    block.refillsAt = leased.refillsAt
    block.left += leased.count
    block.stored = leased.remaining
    block.exhausted.until = 0
  }

  function exhausted(quota: Quota, block: Block): KeywayError {
    const now = clock.now()
    const until = quota.refill && (block.refillsAt ?? nextRefill(quota.refill.every, now))
    const retryAfter = until === null ? undefined : Math.max(1, Math.ceil((until - now) / SECOND))
    const detail =
      retryAfter === undefined
        ? 'The quota of this key is used up. Its owner can give it more.'
        : `The quota of this key is used up. It is refilled in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
    return new KeywayError('quota_exhausted', detail, { retryAfter })
  }

  async function giveBack(id: string, block: Block): Promise<void> {
    if (block.leasing) return
    const { left, refillsAt } = block
    blocks.delete(id)
    const now = clock.now()
    if (left > 0 && !isOver(block, now)) await store.giveBack(id, left, refillsAt, now)
  }

  async function makeRoom(): Promise<void> {
    if (blocks.size <= MAX_BLOCKS) return
    const [oldest] = blocks
    if (oldest) await giveBack(...oldest)
  }
}

function isOver({ refillsAt }: Block, now: Instant): boolean {
  return refillsAt !== null && refillsAt <= now
}

function sizeOf({ granted, refill }: Quota): number {
  return Math.max(granted, refill?.amount ?? 0)
}
