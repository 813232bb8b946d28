/** The operations of clients and their outcomes, the only input of the checkers. */

export type OperationName =
  | 'send'
  | 'verify'
  | 'create'
  | 'exchange'
  | 'revoke'
  | 'refresh'
  | 'logout'
  | 'me'
  | 'charge'
  | 'stranger'

export interface Operation {
  op: OperationName
  /** The link, key, session or address that the operation concerned. */
  on: string
  start: number
  end: number
  /** `unknown` if there was no answer, a reset or a 5xx, so that the operation may have taken effect. */
  outcome: 'ok' | 'fail' | 'unknown'
  /** The error code of a refusal; null if there is none. */
  code: string | null
}

export interface History {
  operations: Operation[]
  /** Violations that a client noticed at once, such as a wrong balance or a lost session. */
  violations: string[]
  /** All secrets that clients received; the service's output must contain none of them. */
  secrets: Set<string>
}

export function createHistory(): History {
  return { operations: [], violations: [], secrets: new Set() }
}

/** One sentence for each violated invariant that the clients' history shows. */
export function violatedInvariants({ operations, violations }: History): string[] {
  return [
    ...violations,
    ...groupByObject(operations, 'verify').flatMap(([link, all]) => checkSingleUse(link, all)),
    ...groupByObject(operations, 'exchange', 'revoke').flatMap(([key, all]) => checkRevocation(key, all)),
    ...groupByObject(operations, 'refresh', 'logout').flatMap(([session, all]) => checkSession(session, all)),
    ...operations
      .filter(each => each.op === 'stranger' && each.outcome === 'ok')
      .map(() => 'a protected call was answered without credentials'),
  ]
}

/** A link works once. The answer to its use may be lost, but "used" is never answered before the first attempt. */
function checkSingleUse(link: string, all: Operation[]): string[] {
  const successes = all.filter(each => each.outcome === 'ok')
  const violations: string[] = []
  if (successes.length > 1) violations.push(`link ${link} signed in ${successes.length} times`)
  const firstTriedAt = Math.min(...all.filter(each => each.outcome !== 'fail').map(each => each.start))
  const earlyRefusals = all.filter(each => each.code === 'magic_link_used' && each.end < firstTriedAt)
  if (earlyRefusals.length > 0) violations.push(`link ${link} counted as used before anybody used it`)
  return violations
}

/**
 * A use that starts after a revocation was answered fails, and no key is refused as revoked before its revocation.
 */
function checkRevocation(key: string, all: Operation[]): string[] {
  const revokedAt = Math.min(
    ...all.filter(each => each.op === 'revoke' && each.outcome === 'ok').map(each => each.end),
  )
  const firstRequestedAt = Math.min(...all.filter(each => each.op === 'revoke').map(each => each.start))
  const exchanges = all.filter(each => each.op === 'exchange')
  const lateSuccesses = exchanges.filter(each => each.outcome === 'ok' && each.start > revokedAt)
  const earlyRefusals = exchanges.filter(
    each => each.code === 'api_key_revoked' && each.end < firstRequestedAt,
  )
  return [
    ...lateSuccesses.map(() => `key ${key} was exchanged after the answer to its revocation`),
    ...earlyRefusals.map(() => `key ${key} was revoked before anybody revoked it`),
  ]
}

/** A correct client never gets `refresh_token_reused`, and no refresh succeeds after a logout was answered. */
function checkSession(session: string, all: Operation[]): string[] {
  const loggedOutAt = Math.min(
    ...all.filter(each => each.op === 'logout' && each.outcome === 'ok').map(each => each.end),
  )
  const refreshes = all.filter(each => each.op === 'refresh')
  return [
    ...refreshes
      .filter(each => each.code === 'refresh_token_reused')
      .map(() => `session ${session} of an honest client was ended for reuse`),
    ...refreshes
      .filter(each => each.outcome === 'ok' && each.start > loggedOutAt)
      .map(() => `session ${session} refreshed after its logout`),
  ]
}

function groupByObject(operations: readonly Operation[], ...names: OperationName[]): [string, Operation[]][] {
  const groups = new Map<string, Operation[]>()
  for (const operation of operations) {
    if (!names.includes(operation.op)) continue
    const group = groups.get(operation.on)
    if (group) group.push(operation)
    else groups.set(operation.on, [operation])
  }
  return [...groups]
}
