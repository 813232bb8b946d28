import type { KeptMessage } from './message-log.ts'

/**
 * Merges the messages that two nodes kept for a connection that moves from the old one to the new one. Messages stay in
 * the order of their list; where the lists contradict each other, that of the old node wins. Messages of one node, or
 * of one sender (which may itself have moved between nodes), also stay in the order in which they were sent. Null if
 * that is impossible: then the old node missed a message, and the agent may have received a later one.
 *
 * @param written messages that the agent may have received; they stay first
 * @param fromOld further messages that the old node kept
 * @param fromNew messages that only the new node kept, and those that the old node kept too but has not written
 * @param messagesOfNew all messages that the new node kept, in the order of their arrival
 */
export function mergeInOrder(
  written: readonly KeptMessage[],
  fromOld: readonly KeptMessage[],
  fromNew: readonly KeptMessage[],
  messagesOfNew: readonly KeptMessage[] = fromNew,
): KeptMessage[] | null {
  const mergedMessages = [...written]
  const oldOrigins = originsOf(fromOld)
  const lastIndexByNode = new Map(fromOld.map(({ origin }, index) => [nodeOf(origin), index]))
  /** The index of the first message in `fromOld` that is not merged yet. */
  let nextOld = 0
  /** Messages of the new node that are not merged yet. */
  const waitingMessages: KeptMessage[] = []
  for (const message of fromNew) {
    if (!oldOrigins.has(message.origin)) {
      waitingMessages.push(message)
      continue
    }
    const index = fromOld.findIndex(({ origin }) => origin === message.origin)
    if (index < nextOld) continue
    // A message waits while `fromOld` has further messages of the node that sent it, and so do all messages after it.
    const firstBlockedIndex = waitingMessages.findIndex(
      ({ origin }) => (lastIndexByNode.get(nodeOf(origin)) ?? -1) > index,
    )
    const readyMessages = waitingMessages.splice(
      0,
      firstBlockedIndex < 0 ? waitingMessages.length : firstBlockedIndex,
    )
    mergedMessages.push(...fromOld.slice(nextOld, index), ...readyMessages, message)
    nextOld = index + 1
  }
  mergedMessages.push(...fromOld.slice(nextOld), ...waitingMessages)
  return isInNodeOrder(mergedMessages) && isInSenderOrder(mergedMessages, messagesOfNew)
    ? mergedMessages
    : null
}

export function originsOf(messages: readonly KeptMessage[]): Set<string> {
  return new Set(messages.map(({ origin }) => origin))
}

function nodeOf(origin: string): string {
  return origin.split(':')[0]!
}

/**
 * Whether the messages of each node are in the order of their numbers. Nodes of the previous version send no numbers,
 * so their messages are not checked.
 */
function isInNodeOrder(messages: readonly KeptMessage[]): boolean {
  const lastNumberByNode = new Map<string, number>()
  for (const { origin } of messages) {
    const [node, number] = origin.split(':')
    if (number === undefined) continue
    if (Number(number) <= (lastNumberByNode.get(node!) ?? 0)) return false
    lastNumberByNode.set(node!, Number(number))
  }
  return true
}

/** Whether the messages of each sender are in the order in which the new node received them. */
function isInSenderOrder(mergedMessages: readonly KeptMessage[], received: readonly KeptMessage[]): boolean {
  const indexByOrigin = new Map(mergedMessages.map(({ origin }, index) => [origin, index]))
  const lastIndexBySender = new Map<string, number>()
  for (const { origin, sender } of received) {
    const index = indexByOrigin.get(origin)
    if (index === undefined || sender === null) continue
    if (index < (lastIndexBySender.get(sender) ?? 0)) return false
    lastIndexBySender.set(sender, index)
  }
  return true
}
