import { type Entry, LinkedList } from './linked-list.ts'

/** Named queues by their length, so that the longest is found without a search, however many there are. */
export interface QueueLengths {
  /** Moves a queue, whose entry has its name, from one length to another; a queue of length 0 is left out. */
  change(queue: Entry<string>, from: number, to: number): void
  /** The length of the longest queue; 0 if all are empty. */
  readonly maxLength: number
  /** The name of the longest queue; of several, the one that reached this length last. Undefined if all are empty. */
  longest(): string | undefined
}

export function createQueueLengths(): QueueLengths {
  /** The queues of length n at index n. */
  const queues: LinkedList<string>[] = []
  let maxLength = 0
  return {
    change(queue, from, to) {
      queues[from]?.remove(queue)
      queues[to] ??= new LinkedList()
      if (to > 0) queues[to].append(queue)
      maxLength = Math.max(maxLength, to)
      while (maxLength > 0 && queues[maxLength]!.size === 0) maxLength--
    },
    get maxLength() {
      return maxLength
    },
    longest: () => queues[maxLength]?.last?.value,
  }
}
