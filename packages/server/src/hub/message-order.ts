import type { KeptMessage } from './message-log.ts'

/**
 * Joins the messages to one connection that two nodes kept: those that the agent may have, those that the old node kept
 * besides, and those that the new node kept. Both lists keep their order; where they differ, that of the old node counts,
 * and each message comes after all earlier ones of its node. Null if one would follow a later one of its node: a
 * node that was cut off missed it, and the agent may have the later one.
 */
export function joinInOrder(
  written: readonly KeptMessage[],
  there: readonly KeptMessage[],
  here: readonly KeptMessage[],
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
    // Those of a node whose earlier ones follow below, and those after them, wait for these.
    const waiting = later.findIndex(({ origin }) => (lastOf.get(nodeOf(origin)) ?? -1) > index)
    const ready = later.splice(0, waiting < 0 ? later.length : waiting)
    joined.push(...there.slice(next, index), ...ready, message)
    next = index + 1
  }
  joined.push(...there.slice(next), ...later)
  return isInOrder(joined) ? joined : null
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
