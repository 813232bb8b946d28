import { digest } from './coverage.ts'

/**
 * A random sample that depends only on the seed and the names of the items: those with the smallest hashes of both, in
 * this order.
 */
export function sampleBySeed<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
  size: number,
  seed: string,
): Item[] {
  return items
    .map(item => ({ item, hash: digest(`${seed} ${nameOf(item)}`) }))
    .sort((a, b) => (a.hash < b.hash ? -1 : 1))
    .slice(0, size)
    .map(({ item }) => item)
}
