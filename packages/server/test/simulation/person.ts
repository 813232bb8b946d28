import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import type { EmailAddress } from '../../src/users/email-address.ts'
import type { Random } from '../support/random.ts'
import { address } from '../support/services.ts'
import { type Ports, refusalOf } from './calls.ts'
import { charge } from './charges.ts'
import { KeyHistory } from './key-history.ts'
import { Robot } from './robots.ts'
import { SimulatedProcess } from './scheduler.ts'
import type { SessionHistory } from './session-history.ts'
import { signIn } from './sign-ins.ts'
import type { World } from './world.ts'

const LIMIT_PER_MINUTE = 5

/**
 * A simulated user. Performs random actions, one to three at a time, until the simulation comes to rest: signs in;
 * refreshes sessions, also with stolen tokens, and ends them; charges the account; has it suspended; creates,
 * exchanges, rotates and revokes API keys, and connects agents with them.
 */
export class Person extends SimulatedProcess {
  readonly world: World
  readonly random: Random
  readonly email: EmailAddress
  userId: string | null = null
  readonly sessions: SessionHistory[] = []
  readonly keys: KeyHistory[] = []
  /** Whether the account is suspended, or is being suspended or activated. */
  mayBeSuspended = false
  /** When the suspension of the account was confirmed; null unless it is certainly suspended. */
  suspendedAt: number | null = null

  constructor(world: World, name: string) {
    super(name)
    this.world = world
    this.random = world.random
    this.email = address(`${name}@example.com`)
  }

  request<Value>(name: string, work: (ports: Ports) => Promise<Value>): Promise<Value> {
    return this.world.calls.request(this, name, work)
  }

  pause(ms: number): Promise<void> {
    return new Promise(resolve => this.world.scheduler.after(this, ms, 'pause', resolve))
  }

  newIdempotencyKey(): string {
    return this.random.bytes(16).toString('hex')
  }

  /** Signs in and acts at random, until `World.isResting`. */
  async live(): Promise<void> {
    while (!this.world.isResting) {
      await this.pause(
        this.random.next() < 0.8 ? this.random.between(1, 1500) : this.random.between(1500, 20_000),
      )
      const count = this.random.pick([1, 1, 1, 2, 3])
      await Promise.all(Array.from({ length: count }, () => this.#act()))
    }
  }

  async #act(): Promise<void> {
    const session = this.#liveSession()
    if (!this.userId || !session || this.random.next() < 0.06) {
      const opened = await signIn(this)
      if (opened) this.sessions.push(opened)
      return
    }
    const dice = this.random.next()
    if (dice < 0.2) await session.refresh()
    else if (dice < 0.23) await session.race()
    else if (dice < 0.26) await session.replay()
    else if (dice < 0.28) await session.logOut()
    else if (dice < 0.4) await charge(this)
    else if (dice < 0.42) await this.#suspend()
    else await this.#useKeys(this.random.next())
  }

  #liveSession(): SessionHistory | null {
    const liveSessions = this.sessions.filter(({ isOver }) => !isOver)
    return liveSessions.length > 0 ? this.random.pick(liveSessions) : null
  }

  async #useKeys(dice: number): Promise<void> {
    const liveKeys = this.keys.filter(({ isOver }) => !isOver)
    if (liveKeys.length === 0 || dice < 0.2) {
      const limit = this.random.next() < 0.3 ? LIMIT_PER_MINUTE : null
      const createdKeys = await Promise.all(
        Array.from({ length: this.random.pick([1, 1, 3]) }, () => KeyHistory.create(this, limit)),
      )
      this.keys.push(...createdKeys.filter(each => each !== null))
      return
    }
    const key = this.random.pick(this.random.next() < 0.8 ? liveKeys : this.keys)
    if (dice < 0.6) await key.exchange()
    else if (dice < 0.72) await this.#connectAgent(key)
    else if (dice < 0.87) await key.revoke()
    else {
      const successor = await key.rotate(this.random.pick([0, 5, 60]))
      if (successor) this.keys.push(successor)
    }
  }

  /** Connects an agent with the key unless it had one before; half of the time revokes the key a moment later. */
  async #connectAgent(key: KeyHistory): Promise<void> {
    if (key.hasAgent) return
    key.hasAgent = true
    const robot = new Robot(this.world, `agent of ${key.id}`, key)
    robot.agent.on('stopped', ({ error }) => {
      if (error && !key.mayHaveEnded && !this.mayBeSuspended)
        this.world.violate(`the agent of living key ${key.id} was stopped: ${error.message}`)
    })
    await this.pause(this.random.between(1, 150))
    if (this.random.next() < 0.5) await key.revoke()
  }

  /** Suspends the account as the operator does on the command line, and activates it again. */
  async #suspend(): Promise<void> {
    if (this.mayBeSuspended) return
    const userId = this.userId!
    this.mayBeSuspended = true
    for (const session of this.sessions) session.mayHaveEnded = true
    const code = await this.request('suspend', ({ users }) => users.suspend(userId, BY_COMMAND_LINE)).then(
      () => 'ok',
      refusalOf,
    )
    if (code === 'ok') {
      this.suspendedAt = this.world.now
      this.world.acknowledged(
        `the suspension of ${userId}`,
        "select 1 from users where id = ? and status = 'suspended'",
        userId,
      )
    }
    await this.pause(this.random.between(100, 8000))
    this.suspendedAt = null
    for (let answer = 'lost'; answer === 'lost'; await this.pause(500)) {
      answer = await this.request('activate', ({ users }) => users.activate(userId, BY_COMMAND_LINE)).then(
        () => 'ok',
        refusalOf,
      )
    }
    for (const session of this.sessions) session.mayHaveEnded = true
    // A suspension whose answer was lost may take effect even now, after the activation.
    if (code !== 'lost') this.mayBeSuspended = false
  }
}
