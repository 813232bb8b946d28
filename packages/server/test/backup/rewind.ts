import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { startPostgresServer } from '../faults/postgres-server.ts'
import { postgresConfig } from '../support/engines.ts'
import { freshPostgres } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { clusterUrl, databaseUrl, withClient } from '../support/postgres.ts'
import { settingsWithFolder } from './commands.ts'

/** How a database can lose its last transactions. */
export type Loss = 'a copied SQLite file' | 'a PostgreSQL snapshot' | 'an asynchronous failover'

/** A database that can be reset to an earlier state. No connection may be open during `saveState` and `rewind`. */
export interface Rewindable {
  settings: Record<string, string>
  /**
   * Saves the state. `rewind` restores it, so that later changes are lost, and returns the settings to use from then
   * on.
   */
  saveState(): Promise<{ rewind(): Promise<Record<string, string>> }>
}

export async function openRewindable(loss: Loss, t: TestContext): Promise<Rewindable> {
  if (loss === 'a copied SQLite file') return openCopiedFile(settingsWithFolder(t))
  return loss === 'a PostgreSQL snapshot' ? snapshot(t) : failover(t)
}

function openCopiedFile(settings: Record<string, string>): Rewindable {
  const file = join(settings.KEYWAY_DATA_DIR!, 'keyway.db')
  return {
    settings,
    async saveState() {
      const files = [file, `${file}-wal`].filter(part => existsSync(part))
      for (const part of files) copyFileSync(part, `${part}.copy`)
      return {
        async rewind() {
          for (const part of [file, `${file}-wal`, `${file}-shm`]) rmSync(part, { force: true })
          for (const part of files) copyFileSync(`${part}.copy`, part)
          return settings
        },
      }
    },
  }
}

async function snapshot(t: TestContext): Promise<Rewindable> {
  const url = await freshPostgres(t)
  const settings = { ...settingsWithFolder(t), KEYWAY_DATABASE_URL: url }
  const name = new URL(url).pathname.slice(1)
  const copyName = `${name}_copy`
  const cluster = await clusterUrl()
  const runStatement = (statement: string) => withClient(cluster, client => client.query(statement))
  t.after(() => runStatement(`drop database if exists ${copyName} with (force)`))
  return {
    settings,
    async saveState() {
      await runStatement(`create database ${copyName} template ${name}`)
      const rewoundSettings = { ...settings, KEYWAY_DATABASE_URL: databaseUrl(cluster, copyName) }
      return { rewind: async () => rewoundSettings }
    },
  }
}

/** A standby whose replication is stopped, and which is promoted after the primary crashed. */
async function failover(t: TestContext): Promise<Rewindable> {
  const primary = await startPostgresServer()
  t.after(() => primary.remove())
  const url = databaseUrl(primary.url, 'postgres')
  await (await createStorage(postgresConfig(url), createLog('silent'))).close()
  const settings = { ...settingsWithFolder(t), KEYWAY_DATABASE_URL: url }
  return {
    settings,
    async saveState() {
      const standby = await primary.startStandby(false)
      t.after(() => standby.remove())
      const flushedLsn = await queryValue(primary.url, 'select pg_current_wal_flush_lsn() as value')
      await untilCondition(standby.url, `pg_last_wal_replay_lsn() >= '${flushedLsn}'::pg_lsn`)
      await withClient(standby.url, client => client.query(`alter system set primary_conninfo = ''`))
      await queryValue(standby.url, 'select pg_reload_conf() as value')
      await untilCondition(standby.url, 'not exists (select from pg_stat_wal_receiver)')
      return {
        async rewind() {
          await primary.crash()
          await standby.promote()
          return { ...settings, KEYWAY_DATABASE_URL: databaseUrl(standby.url, 'postgres') }
        },
      }
    },
  }
}

function untilCondition(url: string, condition: string): Promise<unknown> {
  return until(condition, () => queryValue(url, `select ${condition} as value`))
}

async function queryValue(url: string, query: string): Promise<unknown> {
  const { rows } = await withClient(url, client => client.query(query))
  return rows[0].value
}
