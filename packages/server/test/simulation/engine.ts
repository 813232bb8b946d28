import { SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import type { Log } from '../../src/log.ts'
import type { Engine, LookUp } from '../../src/storage/engine.ts'
import { createKeyedMutex } from '../../src/storage/keyed-mutex.ts'
import { withRetries } from '../../src/storage/postgres.ts'
import { createConnections, runStatement, withConnection } from '../../src/storage/postgres-connections.ts'
import { createTransactions } from '../../src/storage/postgres-transactions.ts'
import type { SimulatedCarrier } from './carrier.ts'
import { isRead } from './database.ts'
import type { DatabaseServer } from './database-server.ts'
import { POOL_SIZE, type Pool } from './pool.ts'

class ConcurrentAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/**
 * The engine of a simulated node: the transactions, retries and connections of the PostgreSQL engine, over the
 * simulated database, which understands SQLite's SQL.
 */
export function createEngine(deps: {
  server: DatabaseServer
  pool: Pool
  carrier: SimulatedCarrier
  log: Log
}): Engine {
  const { server, pool, carrier, log } = deps
  const connections = createConnections(pool.asPool, POOL_SIZE)
  const executeOnce = (sql: string, parameters: readonly unknown[]) =>
    withConnection(connections, isRead(sql) ? 'read' : 'write', client =>
      runStatement(client, sql, parameters),
    )
  const execute = (sql: string, parameters: readonly unknown[]) =>
    withRetries(isRead(sql), () => executeOnce(sql, parameters))
  const indexedBy = (index: string) => `indexed by ${index}`
  const notSimulated = () => {
    throw new Error('not part of the simulation')
  }

  return {
    dialect: {
      createAdapter: () => new ConcurrentAdapter(),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createIntrospector: db => new SqliteIntrospector(db),
    },
    connection: { execute },
    events: carrier,
    transaction: createTransactions(connections, carrier, log),
    runExclusive: createKeyedMutex(),
    async lookUp(what: LookUp, key) {
      const sql = `${what.select({ indexedBy })} where ${what.column} = ?`
      return (await execute(sql, [key])).rows[0]
    },
    binaryCollation: 'collate binary',
    jsonElements: 'json_each',
    indexedBy,
    clockReference: 'database',
    async readClock() {
      await execute('select 1', [])
      return Math.floor(server.time)
    },
    toStartError: error => error,
    async close() {
      await carrier.stop()
    },
    snapshot: notSimulated,
    appendOnly: notSimulated,
    refuseTruncate: notSimulated,
    trigramIndex: notSimulated,
  }
}
