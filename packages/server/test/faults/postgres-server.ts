import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findPostgresBinaries, unprivilegedIdentity, withClient } from '../support/postgres.ts'
import { freePort } from '../support/serve.ts'

/** A PostgreSQL that keeps its promises (fsync on) and can be treated badly. */
export interface PostgresServer {
  url: string
  /** As a crash: no goodbye, recovery from the log at the next start. */
  crash(): Promise<void>
  start(): Promise<void>
  /** Refuses writes, as a standby does, until called with false. */
  readOnly(on: boolean): Promise<void>
  remove(): Promise<void>
}

export async function startPostgresServer(): Promise<PostgresServer> {
  const binaries = findPostgresBinaries()
  if (!binaries) throw new Error('PostgreSQL is not installed')
  const identity = unprivilegedIdentity()
  const folder = mkdtempSync(join(tmpdir(), 'keyway-faults-'))
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid!)
  const data = join(folder, 'data')
  const options = ['-D', data, '-U', 'keyway', '-A', 'trust', '-E', 'UTF8', '--locale=C']
  const made = spawnSync(join(binaries, 'initdb'), options, { ...identity, cwd: folder })
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const port = await freePort()
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
      server = spawn(join(binaries, 'postgres'), ['-D', data, ...settings], {
        ...identity,
        cwd: '/',
        stdio: 'ignore',
      })
      for (let attempt = 0; attempt < 400; attempt++) {
        const ready = await withClient(url, client => client.query('select 1')).then(
          () => true,
          () => false,
        )
        if (ready) return
        await wait(25)
      }
      throw new Error('PostgreSQL does not start')
    },
    async crash() {
      if (!server || server.exitCode !== null) return
      const exited = once(server, 'exit')
      server.kill('SIGQUIT')
      await exited
    },
    async readOnly(on) {
      await withClient(url, async client => {
        await client.query('set default_transaction_read_only = off')
        await client.query(`alter system set default_transaction_read_only = ${on ? 'on' : 'off'}`)
        await client.query('select pg_reload_conf()')
      })
    },
    async remove() {
      await postgres.crash()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await postgres.start()
  return postgres
}
