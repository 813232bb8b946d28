import type { SimulatedCarrierMessage } from './carrier.ts'
import { SimulatedTransaction } from './database.ts'
import { failedTransactionError, lockTimeoutError } from './database-errors.ts'
import type { DatabaseServer } from './database-server.ts'
import type { SimulatedProcess } from './scheduler.ts'

/** The timeouts of postgres-connections.ts. */
const QUERY_TIMEOUT_MS = 6000
const LOCK_TIMEOUT_MS = 2000

interface Answer {
  rows: unknown[]
  rowCount: number
  command: string
}

interface Request {
  sql: string
  parameters: readonly unknown[]
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** The text of the statement by which a node publishes events, on its own or as part of a transaction. */
export const NOTIFY = 'notify'

/** A node's connection to the database: both of its ends, and the network between them, which keeps the order. */
export class Connection {
  isBroken = false
  readonly owner: SimulatedProcess
  readonly #server: DatabaseServer
  #reachesServerAt = 0
  #reachesNodeAt = 0
  readonly #pending = new Set<Request>()
  /** Whether the server has closed its end. */
  #isGone = false
  #queue: Request[] = []
  #isBlocked = false
  #work: SimulatedTransaction | null = null
  #hasFailed = false
  #notifications: SimulatedCarrierMessage[] = []

  constructor(server: DatabaseServer, owner: SimulatedProcess) {
    this.#server = server
    this.owner = owner
    server.connections.add(this)
  }

  query(sql: string, parameters: readonly unknown[] = []): Promise<Answer> {
    if (this.isBroken) return Promise.reject(new Error('Connection terminated'))
    return new Promise((resolve, reject) => {
      const settle = () => {
        this.#pending.delete(request)
        cancel()
      }
      const request: Request = {
        sql,
        parameters,
        resolve: answer => {
          settle()
          resolve(answer)
        },
        reject: error => {
          settle()
          reject(error)
        },
      }
      const timeOut = () => request.reject(new Error('Query read timeout of the connection'))
      const cancel = this.#server.scheduler.after(this.owner, QUERY_TIMEOUT_MS, 'query timeout', timeOut)
      this.#pending.add(request)
      this.#toServer(() => this.#receive(request))
    })
  }

  /** Breaks the connection for both ends. `areDelivered` says whether requests in transit still reach the server. */
  drop(areDelivered: boolean): void {
    if (!this.isBroken) {
      this.isBroken = true
      const pending = [...this.#pending]
      this.#server.scheduler.after(this.owner, this.#server.latency(), 'connection lost', () => {
        for (const request of pending) request.reject(new Error('Connection terminated unexpectedly'))
      })
    }
    if (areDelivered) this.#toServer(() => this.#goAway())
    else this.#goAway()
  }

  /** Closes the node's end. */
  end(): void {
    this.isBroken = true
    this.#toServer(() => this.#goAway())
  }

  #toServer(arrive: () => void): void {
    const { scheduler, process } = this.#server
    this.#reachesServerAt = Math.max(this.#reachesServerAt, scheduler.now + this.#server.latency())
    scheduler.after(process, this.#reachesServerAt - scheduler.now, 'request', arrive)
  }

  #answer(request: Request, answer: Answer | { error: unknown }, delay = 0): void {
    const { scheduler } = this.#server
    const { isBroken } = this
    this.#reachesNodeAt = Math.max(this.#reachesNodeAt, scheduler.now + this.#server.latency() + delay)
    scheduler.after(this.owner, this.#reachesNodeAt - scheduler.now, 'answer', () => {
      if (isBroken || this.isBroken) return
      if ('error' in answer) request.reject(answer.error)
      else request.resolve(answer)
    })
  }

  #receive(request: Request): void {
    if (this.#isGone) return
    this.#queue.push(request)
    this.#serve()
  }

  #serve(): void {
    while (!this.#isBlocked && this.#queue.length > 0) this.#handle(this.#queue.shift()!)
  }

  #handle(request: Request): void {
    const { sql } = request
    if (sql.startsWith('begin')) {
      this.#work = new SimulatedTransaction(this.#server.scheduler.now)
      this.#answer(request, emptyAnswer('BEGIN'))
    } else if (sql === 'commit') this.#commit(request)
    else if (sql === 'rollback') {
      this.#rollBack()
      this.#answer(request, emptyAnswer('ROLLBACK'))
    } else this.#execute(request)
  }

  #execute(request: Request): void {
    if (this.#hasFailed) this.#answer(request, { error: failedTransactionError() })
    else if (request.sql === NOTIFY) this.#notify(request)
    else this.#run(request, this.#work ?? new SimulatedTransaction(this.#server.scheduler.now))
  }

  #run(request: Request, own: SimulatedTransaction): void {
    try {
      const executed = this.#server.execute(own, request.sql, request.parameters)
      if ('blockedBy' in executed) {
        this.#await(request, own, executed.blockedBy)
        return
      }
      if (!this.#work) this.#server.commit(own, [])
      this.#answer(request, { rows: executed.rows, rowCount: executed.changes, command: 'DONE' })
    } catch (error) {
      this.#fail(request, own, error)
    }
  }

  /** Runs the statement again when the transaction that it waits for has ended, or fails it after the lock timeout. */
  #await(request: Request, own: SimulatedTransaction, other: SimulatedTransaction): void {
    const { scheduler, process, database } = this.#server
    this.#isBlocked = true
    own.waitsFor = other
    let hasRetried = false
    const retry = () => {
      hasRetried = true
      cancel()
      own.waitsFor = null
      this.#isBlocked = false
    }
    const cancel = scheduler.after(process, LOCK_TIMEOUT_MS, 'lock timeout', () => {
      if (hasRetried) return
      retry()
      this.#fail(request, own, lockTimeoutError())
      this.#serve()
    })
    database.whenEnded(other, () => {
      if (hasRetried) return
      scheduler.after(process, 0, 'unblocked', () => {
        if (hasRetried) return
        retry()
        if (this.#isGone) return
        this.#queue.unshift(request)
        this.#serve()
      })
    })
  }

  #fail(request: Request, own: SimulatedTransaction, error: unknown): void {
    if (this.#work) this.#hasFailed = true
    else this.#server.database.rollBack(own)
    this.#answer(request, { error })
  }

  #notify(request: Request): void {
    const messages = request.parameters as SimulatedCarrierMessage[]
    if (this.#work) this.#notifications.push(...messages)
    else this.#server.publish(messages)
    this.#answer(request, emptyAnswer('NOTIFY'))
  }

  #commit(request: Request): void {
    const work = this.#work
    if (!work || this.#hasFailed) {
      this.#rollBack()
      this.#answer(request, emptyAnswer('ROLLBACK'))
      return
    }
    const fault = this.#server.faults.commit()
    if (fault === 'lost before') {
      this.drop(false)
      return
    }
    this.#server.commit(work, this.#notifications)
    this.#forget()
    if (fault === 'lost after') this.drop(true)
    else this.#answer(request, emptyAnswer('COMMIT'), fault === 'late' ? this.#server.faults.lateness() : 0)
  }

  #rollBack(): void {
    if (this.#work) this.#server.database.rollBack(this.#work)
    this.#forget()
  }

  #forget(): void {
    this.#work = null
    this.#hasFailed = false
    this.#notifications = []
  }

  #goAway(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#queue = []
    this.#server.connections.delete(this)
    this.#rollBack()
  }
}

function emptyAnswer(command: string): Answer {
  return { rows: [], rowCount: 0, command }
}
