import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/patience.ts'
import { findPostgresBinaries, unprivilegedIdentity, withClient } from '../support/postgres.ts'

/** Maximum time of a start, which includes the recovery after a crash. */
const START_MS = 20_000

/** A PostgreSQL server with fsync, into which faults are injected. */
export interface PostgresServer {
  url: string
  /** Stops as in a crash, with recovery from the log at the next start. */
  crash(): Promise<void>
  start(): Promise<void>
  /** Starts a replica; with `synchronous`, commits are acknowledged only after the replica has them. */
  startStandby(synchronous: boolean): Promise<PostgresServer>
  /** Makes a standby the primary. */
  promote(): Promise<void>
  /** Makes the server refuse writes, like a standby, until called with false. */
  readOnly(on: boolean): Promise<void>
  remove(): Promise<void>
}

export async function startPostgresServer(): Promise<PostgresServer> {
  const folder = makeFolder()
  const data = join(folder, 'data')
  await runTool('initdb', ['-D', data, '-U', 'keyway', '-A', 'trust', '-E', 'UTF8', '--locale=C'], folder)
  return startOn(folder, data, await freePort())
}

async function startOn(folder: string, data: string, port: number): Promise<PostgresServer> {
  const url = `postgres://keyway@127.0.0.1:${port}/postgres`
  let server: ChildProcess | null = null

  const postgres: PostgresServer = {
    url,
    async start() {
      const settings = [
        `port=${port}`,
        'listen_addresses=127.0.0.1',
        `unix_socket_directories=${folder}`,
        'max_connections=200',
        'log_min_messages=fatal',
      ].flatMap(setting => ['-c', setting])
      server = spawn(pathOfTool('postgres'), ['-D', data, ...settings], {
        ...unprivilegedIdentity(),
        cwd: '/',
        stdio: 'ignore',
      })
      await until('PostgreSQL starts', () => isAnswering(url), START_MS)
    },
    async crash() {
      if (!server || server.exitCode !== null || server.signalCode !== null) return
      const exited = once(server, 'exit')
      server.kill('SIGQUIT')
      await exited
    },
    async startStandby(synchronous) {
      const standbyFolder = makeFolder()
      const standbyData = join(standbyFolder, 'data')
      const connection = ['-h', '127.0.0.1', '-p', String(port), '-U', 'keyway']
      const options = ['-D', standbyData, '-R', '--checkpoint=fast']
      await runTool('pg_basebackup', [...connection, ...options], standbyFolder)
      const standby = await startOn(standbyFolder, standbyData, await freePort())
      if (synchronous) await configure(`alter system set synchronous_standby_names = '*'`)
      await untilFollowed(synchronous)
      return standby
    },
    async promote() {
      await withClient(url, client => client.query('select pg_promote(true)'))
    },
    readOnly: on => configure(`alter system set default_transaction_read_only = ${on ? 'on' : 'off'}`),
    async remove() {
      await postgres.crash()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await postgres.start()
  return postgres

  async function configure(change: string): Promise<void> {
    await withClient(url, async client => {
      await client.query('set default_transaction_read_only = off')
      await client.query(change)
      await client.query('select pg_reload_conf()')
    })
  }

  async function untilFollowed(synchronous: boolean): Promise<void> {
    const state = synchronous ? 'sync' : 'async'
    await until('the standby follows', async () => {
      const { rows } = await withClient(url, client =>
        client.query("select sync_state from pg_stat_replication where state = 'streaming'"),
      )
      return rows.some(row => row.sync_state === state)
    })
  }
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-faults-'))
  const { uid, gid } = unprivilegedIdentity()
  if (uid !== undefined) chownSync(folder, uid, gid!)
  return folder
}

function pathOfTool(name: string): string {
  const binaries = findPostgresBinaries()
  if (!binaries) throw new Error('PostgreSQL is not installed')
  return join(binaries, name)
}

/** Asynchronous, since tests of nodes with timeouts of a few seconds run in this process at the same time. */
async function runTool(name: string, values: string[], cwd: string): Promise<void> {
  const child = spawn(pathOfTool(name), values, {
    ...unprivilegedIdentity(),
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [errors, [status]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (status !== 0) throw new Error(`${name} failed: ${errors}`)
}

async function isAnswering(url: string): Promise<boolean> {
  return withClient(url, client => client.query('select 1')).then(
    () => true,
    () => false,
  )
}
