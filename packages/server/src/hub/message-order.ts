import type { KeptMessage } from './message-log.ts'

/**
 * Merges the messages to one connection that two nodes kept: those that the agent may have received, further ones of
 * the old node, and those of the new node. Both lists keep their order; where they differ, the old node's order counts,
 * and each message comes after all earlier ones of the node that sent it. Null if that is impossible, because a message
 * would follow a later one of its node, or of its sender, who may have moved: a node that was cut off missed it, and
 * the agent may have received the later one.
 *
 * @param seen all messages that the new node kept, those of `here` and those that the old node kept too, in order of
 * arrival
 */
export function mergeInOrder(
  written: readonly KeptMessage[],
  there: readonly KeptMessage[],
  here: readonly KeptMessage[],
  seen: readonly KeptMessage[] = here,
): KeptMessage[] | null {
  const joined = [...written]
  const shared = originsOf(there)
  const lastOf = new Map(there.map(({ origin }, index) => [nodeOf(origin), index]))
  let next = 0
  const later: KeptMessage[] = []
  for (const message of here) {
    if (!shared.has(message.origin)) {
      later.push(message)
      continue
    }
    const index = there.findIndex(({ origin }) => origin === message.origin)
    if (index < next) continue
    // A message waits here while earlier ones of its node follow below; so do all messages after it.
    const waiting = later.findIndex(({ origin }) => (lastOf.get(nodeOf(origin)) ?? -1) > index)
    const ready = later.splice(0, waiting < 0 ? later.length : waiting)
    joined.push(...there.slice(next, index), ...ready, message)
    next = index + 1
  }
  joined.push(...there.slice(next), ...later)
  return isInOrder(joined) && followsSenders(joined, seen) ? joined : null
}

export function originsOf(messages: readonly KeptMessage[]): Set<string> {
  return new Set(messages.map(({ origin }) => origin))
}

function nodeOf(origin: string): string {
  return origin.split(':')[0]!
}

/** Nodes of the previous version do not number their messages. */
function isInOrder(messages: readonly KeptMessage[]): boolean {
  const last = new Map<string, number>()
  for (const { origin } of messages) {
    const [node, number] = origin.split(':')
    if (number === undefined) continue
    if (Number(number) <= (last.get(node!) ?? 0)) return false
    last.set(node!, Number(number))
  }
  return true
}

/** Whether the messages of each sender are in the order in which this node received them. */
function followsSenders(joined: readonly KeptMessage[], seen: readonly KeptMessage[]): boolean {
  const indexOf = new Map(joined.map(({ origin }, index) => [origin, index]))
  const last = new Map<string, number>()
  for (const { origin, sender } of seen) {
    const index = indexOf.get(origin)
    if (index === undefined || sender === null) continue
    if (index < (last.get(sender) ?? 0)) return false
    last.set(sender, index)
  }
  return true
}
