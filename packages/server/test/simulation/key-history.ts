import { caller } from '../support/services.ts'
import { refusalOf } from './calls.ts'
import type { Person } from './person.ts'

/** How far the clocks of nodes may differ. */
const CLOCK_TOLERANCE_MS = 3000
const MINUTE_MS = 60_000

/** A key as its owner knows it, and what must hold of its exchanges. */
export class KeyHistory {
  readonly id: string
  readonly key: string
  readonly #person: Person
  /** The most exchanges in a minute; null if there is no limit. */
  readonly #limit: number | null
  readonly #exchanges: { from: number; to: number }[] = []
  hasAgent = false
  /** Whether somebody has made a call that may have ended the key. */
  mayHaveEnded = false
  /** From this time on no exchange succeeds. */
  #endsAt = Number.POSITIVE_INFINITY

  constructor(person: Person, id: string, key: string, limit: number | null) {
    this.#person = person
    this.id = id
    this.key = key
    this.#limit = limit
  }

  static async create(person: Person, limit: number | null = null): Promise<KeyHistory | null> {
    const { world, userId } = person
    try {
      const { key, apiKey } = await person.request('create key', ({ apiKeys }) =>
        apiKeys.create(
          userId!,
          {
            name: null,
            scopes: null,
            expiresAt: null,
            appId: 'service-sdk',
            allowedNetworks: [],
            ...(limit !== null && {
              limits: { requests: [{ limit, per: 'minute' }], spend: [], quota: null },
            }),
          },
          caller(),
        ),
      )
      world.acknowledged(`key ${apiKey.id}`, 'select 1 from api_keys where id = ?', apiKey.id)
      return new KeyHistory(person, apiKey.id, key, limit)
    } catch (error) {
      refusalOf(error)
      return null
    }
  }

  get isOver(): boolean {
    return this.#endsAt <= this.#person.world.now
  }

  async exchange(): Promise<void> {
    const { world } = this.#person
    const startTime = world.now
    const code = await this.#person
      .request('exchange', ({ agentTokens }) => agentTokens.exchange(this.key, undefined, caller()))
      .then(() => 'ok', refusalOf)
    if (code === 'ok') this.#exchanged(startTime)
    else if (code !== 'lost') this.#refused(code)
  }

  async revoke(): Promise<void> {
    const { world, userId } = this.#person
    this.mayHaveEnded = true
    const code = await this.#person
      .request('revoke', ({ apiKeys }) => apiKeys.revoke(userId!, this.id, caller()))
      .then(() => 'ok', refusalOf)
    if (code !== 'ok') return
    this.#endsAt = Math.min(this.#endsAt, world.now)
    world.acknowledged(
      `the revocation of ${this.id}`,
      'select 1 from api_keys where id = ? and revoked_at is not null',
      this.id,
    )
  }

  async rotate(overlapSeconds: number): Promise<KeyHistory | null> {
    const { world, userId } = this.#person
    this.mayHaveEnded = true
    try {
      const { key, apiKey } = await this.#person.request('rotate', ({ apiKeys }) =>
        apiKeys.rotate(userId!, this.id, overlapSeconds, caller()),
      )
      const overlapMs = overlapSeconds > 0 ? overlapSeconds * 1000 + CLOCK_TOLERANCE_MS : 0
      this.#endsAt = Math.min(this.#endsAt, world.now + overlapMs)
      world.acknowledged(`key ${apiKey.id}`, 'select 1 from api_keys where id = ?', apiKey.id)
      return new KeyHistory(this.#person, apiKey.id, key, this.#limit)
    } catch (error) {
      refusalOf(error)
      return null
    }
  }

  #exchanged(from: number): void {
    const { world } = this.#person
    if (from > this.#endsAt) world.violate(`key ${this.id} was exchanged after its end`)
    if (this.#person.suspendedAt !== null && from > this.#person.suspendedAt)
      world.violate(`key ${this.id} was exchanged while its owner was suspended`)
    if (this.#limit === null) return
    this.#exchanges.push({ from, to: world.now })
    const recentExchanges = this.#exchanges.filter(
      each => each.from > world.now - MINUTE_MS + CLOCK_TOLERANCE_MS,
    )
    if (recentExchanges.length > this.#limit)
      world.violate(`key ${this.id} was exchanged ${recentExchanges.length} times in a minute`)
  }

  #refused(code: string): void {
    const { world } = this.#person
    const isExplained =
      code === 'rate_limited'
        ? this.#limit !== null
        : code === 'account_suspended' && this.#person.mayBeSuspended
    if (!isExplained && !this.mayHaveEnded) world.violate(`living key ${this.id} was refused: ${code}`)
  }
}
