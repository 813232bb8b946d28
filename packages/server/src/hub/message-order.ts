import type { KeptMessage } from './message-log.ts'

/**
 * Joins the messages to one connection that two nodes kept: those that the agent may have, those that the old node kept
 * besides, and those that the new node kept. Both lists keep their order; where they differ, that of the old node counts.
 * Null if a message would follow a later one of the same node: a node that was cut off missed it, and the agent may have
 * the later one.
 */
export function joinInOrder(
  written: readonly KeptMessage[],
  there: readonly KeptMessage[],
  here: readonly KeptMessage[],
): KeptMessage[] | null {
  const joined = [...written]
  const shared = originsOf(there)
  let next = 0
  let later: KeptMessage[] = []
  for (const message of here) {
    if (!shared.has(message.origin)) {
      later.push(message)
      continue
    }
    const index = there.findIndex(({ origin }) => origin === message.origin)
    if (index < next) continue
    joined.push(...there.slice(next, index), ...later, message)
    next = index + 1
    later = []
  }
  joined.push(...there.slice(next), ...later)
  return isInOrder(joined) ? joined : null
}

export function originsOf(messages: readonly KeptMessage[]): Set<string> {
  return new Set(messages.map(({ origin }) => origin))
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
