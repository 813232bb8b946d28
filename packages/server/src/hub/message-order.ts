import type { KeptMessage } from './message-log.ts'

/**
 * Merges the messages that two nodes kept for one connection. Both lists keep their order; where they contradict each
 * other, the old node's order counts, and each message comes after all earlier ones of the node that sent it. Null if
 * no such order exists, since a message would follow a later one of the same node, or of the same sender, which may
 * have moved to another node: the old node missed the earlier message, and the agent may have received the later one.
 *
 * @param written messages that the agent may have received; they stay first
 * @param fromOld further messages that the old node kept
 * @param fromNew messages that only the new node kept, and those that the old node kept too but has not written
 * @param allOfNew all messages that the new node kept, in the order of their arrival
 */
export function mergeInOrder(
  written: readonly KeptMessage[],
  fromOld: readonly KeptMessage[],
  fromNew: readonly KeptMessage[],
  allOfNew: readonly KeptMessage[] = fromNew,
): KeptMessage[] | null {
  const merged = [...written]
  const oldOrigins = originsOf(fromOld)
  const lastIndexOf = new Map(fromOld.map(({ origin }, index) => [nodeOf(origin), index]))
  let next = 0
  /** Messages of the new node that are not merged yet. */
  const waiting: KeptMessage[] = []
  for (const message of fromNew) {
    if (!oldOrigins.has(message.origin)) {
      waiting.push(message)
      continue
    }
    const index = fromOld.findIndex(({ origin }) => origin === message.origin)
    if (index < next) continue
    // A message goes on waiting while the old node's list has further messages of its node; so do all messages after
    // it.
    const firstBlocked = waiting.findIndex(({ origin }) => (lastIndexOf.get(nodeOf(origin)) ?? -1) > index)
    const ready = waiting.splice(0, firstBlocked < 0 ? waiting.length : firstBlocked)
    merged.push(...fromOld.slice(next, index), ...ready, message)
    next = index + 1
  }
  merged.push(...fromOld.slice(next), ...waiting)
  return keepsNodeOrder(merged) && keepsSenderOrder(merged, allOfNew) ? merged : null
}

export function originsOf(messages: readonly KeptMessage[]): Set<string> {
  return new Set(messages.map(({ origin }) => origin))
}

function nodeOf(origin: string): string {
  return origin.split(':')[0]!
}

/**
 * Whether the messages of each node are in the order of their numbers, which nodes of the previous version do not send.
 */
function keepsNodeOrder(messages: readonly KeptMessage[]): boolean {
  const lastNumberOf = new Map<string, number>()
  for (const { origin } of messages) {
    const [node, number] = origin.split(':')
    if (number === undefined) continue
    if (Number(number) <= (lastNumberOf.get(node!) ?? 0)) return false
    lastNumberOf.set(node!, Number(number))
  }
  return true
}

/** Whether the messages of each sender are in the order in which the new node received them. */
function keepsSenderOrder(merged: readonly KeptMessage[], received: readonly KeptMessage[]): boolean {
  const indexOf = new Map(merged.map(({ origin }, index) => [origin, index]))
  const lastIndexOfSender = new Map<string, number>()
  for (const { origin, sender } of received) {
    const index = indexOf.get(origin)
    if (index === undefined || sender === null) continue
    if (index < (lastIndexOfSender.get(sender) ?? 0)) return false
    lastIndexOfSender.set(sender, index)
  }
  return true
}
