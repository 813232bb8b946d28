import { caller } from '../support/services.ts'
import { refusalOf } from './calls.ts'
import type { Person } from './person.ts'

/** A session as its client knows it, and what must hold of its refresh tokens. */
export class SessionHistory {
  readonly id: string
  readonly userId: string
  readonly #person: Person
  #token: string
  /** Tokens that were rotated. */
  readonly #used: string[] = []
  /** For each rotated token, the token that replaced it. */
  readonly #successors = new Map<string, string>()
  /** For each rotated token, the Idempotency-Key of the refresh that rotated it. */
  readonly #rotatedWith = new Map<string, string | null>()
  /** The Idempotency-Key of a refresh whose outcome is unknown. */
  #retryKey: string | null = null
  /** The `refresh()` in progress, which further calls join. */
  #refreshing: Promise<void> | null = null
  /** Whether somebody has made a call that may have ended the session. */
  mayHaveEnded = false
  /** When the client learned that the session has ended; null before. */
  #endedAt: number | null = null
  #usedAt: number
  readonly #openedAt: number

  constructor(person: Person, userId: string, id: string, token: string) {
    this.#person = person
    this.userId = userId
    this.id = id
    this.#token = token
    this.#openedAt = person.world.now
    this.#usedAt = person.world.now
  }

  get isOver(): boolean {
    return this.#endedAt !== null
  }

  /** Refreshes as a careful client does: one at a time, up to four times with one Idempotency-Key until answered. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshUntilAnswered().finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  async #refreshUntilAnswered(): Promise<void> {
    this.#retryKey ??= this.#person.newIdempotencyKey()
    for (let attempt = 0; attempt < 4; attempt++) {
      const code = await this.#present(this.#token, this.#retryKey, token => this.#rotated(token))
      if (code === 'ok') return
      if (code !== 'lost') return this.#refused(code)
      await this.#person.pause(this.#person.random.between(10, 1500))
    }
  }

  /** Refreshes with the same token from two programs at once. */
  async race(): Promise<void> {
    this.mayHaveEnded = true
    const token = this.#token
    const presentToken = () =>
      this.#present(token, this.#person.newIdempotencyKey(), next => this.#rotated(next))
    const codes = await Promise.all([presentToken(), presentToken()])
    if (codes.includes('refresh_token_reused')) this.#endedByReuse()
  }

  /** Presents a token that was already rotated, as a thief would. */
  async replay(): Promise<void> {
    const { world, random } = this.#person
    if (this.#used.length === 0) return
    this.mayHaveEnded = true
    const usedToken = random.pick(this.#used)
    const code = await this.#present(usedToken, null, () =>
      world.violate('a used refresh token was accepted'),
    )
    if (code === 'refresh_token_reused') this.#endedByReuse()
    else if (code !== 'ok' && code !== 'lost') this.#endedAt ??= world.now
  }

  async logOut(): Promise<void> {
    const { world } = this.#person
    this.mayHaveEnded = true
    const code = await this.#person
      .request('logout', ({ sessions }) => sessions.endByToken(this.#token, 'logout', caller()))
      .then(() => 'ok', refusalOf)
    if (code !== 'ok') return
    this.#endedAt ??= world.now
    world.acknowledged(
      `the logout of ${this.id}`,
      'select 1 from sessions where id = ? and ended_at is not null',
      this.id,
    )
  }

  async #present(token: string, key: string | null, onRotated: (next: string) => void): Promise<string> {
    const { world } = this.#person
    const startedAt = world.now
    try {
      const { tokens } = await this.#person.request('refresh', ({ sessions }) =>
        sessions.refresh(token, key, caller()),
      )
      const successor = this.#successors.get(token) ?? tokens.refreshToken
      if (successor !== tokens.refreshToken) world.violate('a refresh token has two living successors')
      if (this.#rotatedWith.has(token) && this.#rotatedWith.get(token) !== key)
        world.violate('a refresh token was rotated twice')
      this.#rotatedWith.set(token, key)
      if (this.#endedAt !== null && this.#endedAt < startedAt)
        world.violate(`session ${this.id} was refreshed after its end`)
      this.#successors.set(token, successor)
      onRotated(successor)
      return 'ok'
    } catch (error) {
      return refusalOf(error)
    }
  }

  #endedByReuse(): void {
    const { world } = this.#person
    this.#endedAt ??= world.now
    world.acknowledged(
      `the end by reuse of ${this.id}`,
      'select 1 from sessions where id = ? and ended_at is not null',
      this.id,
    )
  }

  #rotated(next: string): void {
    if (this.#token !== next) this.#used.push(this.#token)
    this.#token = next
    this.#retryKey = null
    this.#usedAt = this.#person.world.now
  }

  #refused(code: string): void {
    const { world } = this.#person
    const { refreshIdleSeconds, sessionSeconds } = world.config
    const isLive =
      world.now - this.#usedAt < (refreshIdleSeconds - 30) * 1000 &&
      world.now - this.#openedAt < (sessionSeconds - 30) * 1000
    if (code === 'rate_limited') return
    if (isLive && !this.mayHaveEnded && !this.#person.mayBeSuspended)
      world.violate(`a careful client of session ${this.id} was refused: ${code}`)
    this.#endedAt ??= world.now
  }
}
