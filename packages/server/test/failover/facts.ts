/**
 * What the service acknowledged to clients, and a checker that compares it with what the service answers afterwards.
 * Clients repeat their requests until these are answered, so each fact is certain in the end.
 */

export interface Facts {
  /** Keys whose creation was acknowledged. */
  keys: Map<string, KeyFact>
  /** Amounts of acknowledged charges by account, in millionths of a dollar. */
  charged: Map<string, number>
}

export interface KeyFact {
  id: string
  key: string
  /** `ending`: a revocation was sent and not answered. */
  state: 'active' | 'ending' | 'revoked'
}

/** What the service answers after the failovers. */
export interface Observer {
  /** The code with which the exchange of a key is refused; null if it is accepted. */
  exchange(key: KeyFact): Promise<string | null>
  /** The balance of an account, in millionths of a dollar. */
  balance(userId: string): Promise<number>
}

/** The credit of a new account, in millionths of a dollar. */
const TRIAL_CREDIT = 2_000_000

export function createFacts(): Facts {
  return { keys: new Map(), charged: new Map() }
}

export interface Losses {
  /** Keys that do not exist although their creation was acknowledged, or are refused although nobody revoked them. */
  keys: string[]
  /** Keys that work again after their revocation was acknowledged. */
  revocations: string[]
  /** Accounts whose balance is not their credit less the acknowledged charges. */
  balances: string[]
}

/** Returns the acknowledged facts that the service's answers contradict. */
export async function lostFacts({ keys, charged }: Facts, observer: Observer): Promise<Losses> {
  const losses: Losses = { keys: [], revocations: [], balances: [] }
  for (const key of keys.values()) {
    const code = await observer.exchange(key)
    if (key.state === 'revoked' && code === null) losses.revocations.push(key.id)
    // An unknown key is lost even if it was revoked, since its creation was acknowledged. A key that is `ending` may be
    // revoked by now.
    if (code === 'invalid_api_key' || (key.state === 'active' && code !== null)) losses.keys.push(key.id)
  }
  for (const [userId, amount] of charged)
    if ((await observer.balance(userId)) !== TRIAL_CREDIT - amount) losses.balances.push(userId)
  return losses
}

export function violationsOf({ keys, revocations, balances }: Losses): string[] {
  return [
    ...keys.map(id => `key ${id} was acknowledged and is lost`),
    ...revocations.map(id => `key ${id} works again after its revocation was acknowledged`),
    ...balances.map(id => `the balance of ${id} is not its credit less the acknowledged charges`),
  ]
}

/**
 * The longest time between `from` and `to` without a successful answer.
 *
 * @param ends times of successful answers
 */
export function longestGap(ends: readonly number[], from: number, to: number): number {
  const endsWithin = ends.filter(at => at >= from && at <= to).sort((a, b) => a - b)
  const marks = [from, ...endsWithin, to]
  return Math.max(...marks.slice(1).map((at, n) => at - marks[n]!))
}
