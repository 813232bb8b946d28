/** A seeded random number generator (mulberry32), so that faults can be repeated. */
export interface Random {
  /** An integer from 0 to `below`, exclusive. */
  below(below: number): number
  pick<Item>(items: readonly Item[]): Item
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: below => Math.floor(next() * below),
    pick: items => items[Math.floor(next() * items.length)]!,
  }
}
