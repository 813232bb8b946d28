import type pg from 'pg'
import { Connection } from './connection.ts'
import type { DatabaseServer } from './database-server.ts'
import type { SimulatedProcess } from './scheduler.ts'

const CONNECT_TIMEOUT_MS = 2000
export const POOL_SIZE = 6

/** A node's pool of connections, in place of `pg.Pool`. */
export class Pool {
  readonly options = { connectionTimeoutMillis: CONNECT_TIMEOUT_MS }
  /** Whether the node reaches the database. */
  isReachable = true
  readonly #server: DatabaseServer
  readonly #owner: SimulatedProcess
  readonly #idle: Connection[] = []
  readonly #all = new Set<Connection>()
  readonly #waiting: ((connection: Connection) => void)[] = []

  constructor(server: DatabaseServer, owner: SimulatedProcess) {
    this.#server = server
    this.#owner = owner
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  /** This pool as a `pg.Pool`; it has the members that the service uses. */
  get asPool(): pg.Pool {
    return this as unknown as pg.Pool
  }

  async connect(): Promise<unknown> {
    const connection = this.#takeIdle() ?? (await this.#open())
    return {
      query: (sql: string, parameters?: readonly unknown[]) => connection.query(sql, parameters),
      release: (broken?: boolean) => this.#release(connection, broken === true),
    }
  }

  /**
   * Breaks all connections, as the death of the node's process or a failure of its network does. `areDelivered` says
   * whether requests in transit still reach the database.
   */
  dropAll(areDelivered: boolean): void {
    for (const connection of this.#all) connection.drop(areDelivered)
    this.#all.clear()
    this.#idle.length = 0
  }

  cutOff(): void {
    this.isReachable = false
    this.dropAll(false)
  }

  heal(): void {
    this.isReachable = true
  }

  #takeIdle(): Connection | undefined {
    for (let next = this.#idle.pop(); next; next = this.#idle.pop()) {
      if (!next.isBroken) return next
      this.#all.delete(next)
    }
    return undefined
  }

  #open(): Promise<Connection> {
    const { scheduler } = this.#server
    for (const each of this.#all) if (each.isBroken) this.#all.delete(each)
    return new Promise((resolve, reject) => {
      const handOver = (connection: Connection) => {
        cancel()
        resolve(connection)
      }
      const cancel = scheduler.after(this.#owner, CONNECT_TIMEOUT_MS, 'connect timeout', () => {
        const at = this.#waiting.indexOf(handOver)
        if (at >= 0) this.#waiting.splice(at, 1)
        reject(new Error('timeout exceeded when trying to connect'))
      })
      if (!this.isReachable) return
      if (this.#all.size >= POOL_SIZE) return void this.#waiting.push(handOver)
      const connection = new Connection(this.#server, this.#owner)
      this.#all.add(connection)
      scheduler.after(this.#owner, 2 * this.#server.latency(), 'connected', () => handOver(connection))
    })
  }

  #release(connection: Connection, isBroken: boolean): void {
    if (isBroken || connection.isBroken) {
      if (!connection.isBroken) connection.end()
      this.#all.delete(connection)
      this.#refill()
      return
    }
    const nextHandOver = this.#waiting.shift()
    if (nextHandOver) nextHandOver(connection)
    else this.#idle.push(connection)
  }

  /** Opens a connection for the longest waiting caller, since a place in the pool became free. */
  #refill(): void {
    const nextHandOver = this.#waiting.shift()
    if (!nextHandOver || !this.isReachable) return
    const connection = new Connection(this.#server, this.#owner)
    this.#all.add(connection)
    nextHandOver(connection)
  }
}
