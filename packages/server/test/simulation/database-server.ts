import type { Random } from '../support/random.ts'
import type { Broker, SimulatedCarrierMessage } from './carrier.ts'
import type { Connection } from './connection.ts'
import { type ExecuteOutcome, isRead, SimulatedDatabase, type SimulatedTransaction } from './database.ts'
import { START_TIME } from './globals.ts'
import { type Scheduler, SimulatedProcess } from './scheduler.ts'
import type { Trace } from './trace.ts'

export type CommitFault = 'none' | 'lost before' | 'lost after' | 'late'

/** The faults of the database and of the network to it. */
export class DatabaseFaults {
  readonly #random: Random
  /** The share of commits with a fault. */
  commitFaults = 0
  /** The longest time of a message between node and database, in milliseconds. */
  latencyMs = 1

  constructor(random: Random) {
    this.#random = random
  }

  commit(): CommitFault {
    if (this.#random.next() >= this.commitFaults) return 'none'
    return this.#random.pick(['lost before', 'lost after', 'late'] as const)
  }

  /** How late a commit is, in milliseconds: sometimes later than a node waits for an answer. */
  lateness(): number {
    return this.#random.next() < 0.2 ? 7000 : this.#random.between(50, 3000)
  }

  latency(): number {
    return 0.1 + this.#random.next() * this.latencyMs
  }
}

/** The database as a process: connections, the clock, and what happens at each commit. */
export class DatabaseServer {
  readonly process = new SimulatedProcess('database')
  readonly connections = new Set<Connection>()
  readonly database: SimulatedDatabase
  readonly scheduler: Scheduler
  readonly faults: DatabaseFaults
  readonly #broker: Broker
  readonly #trace: Trace
  readonly #onCommit: (work: SimulatedTransaction) => void
  /** Milliseconds by which the database's clock was stepped. */
  clockOffset = 0

  constructor(deps: {
    image: Uint8Array
    scheduler: Scheduler
    random: Random
    broker: Broker
    trace: Trace
    onCommit(work: SimulatedTransaction): void
  }) {
    this.database = new SimulatedDatabase(deps.image)
    this.scheduler = deps.scheduler
    this.faults = new DatabaseFaults(deps.random)
    this.#broker = deps.broker
    this.#trace = deps.trace
    this.#onCommit = deps.onCommit
  }

  get time(): number {
    return START_TIME + this.scheduler.now + this.clockOffset
  }

  latency(): number {
    return this.faults.latency()
  }

  execute(work: SimulatedTransaction, sql: string, parameters: readonly unknown[]): ExecuteOutcome {
    const executed = this.database.execute(work, sql, parameters)
    if (!isRead(sql)) {
      const result = 'blockedBy' in executed ? 'waits' : executed.changes
      this.#trace.add(this.scheduler.now, 'sql', `${sql} ${parameters.join(', ')} -> ${result}`)
    }
    return executed
  }

  commit(work: SimulatedTransaction, notifications: SimulatedCarrierMessage[]): void {
    this.database.commit(work)
    this.publish(notifications)
    if (work.locks.size > 0) this.#onCommit(work)
  }

  publish(messages: readonly SimulatedCarrierMessage[]): void {
    for (const message of messages) this.#broker.publish(message)
  }

  /**
   * Ends all connections as a restart of the database does: changes that were not committed are lost. `areDelivered`
   * says whether requests in transit still reach the server.
   */
  dropAll(areDelivered: boolean): void {
    for (const connection of [...this.connections]) connection.drop(areDelivered)
  }
}
