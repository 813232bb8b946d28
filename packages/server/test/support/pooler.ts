import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { skipWithout } from './missing-servers.ts'
import { until } from './patience.ts'
import { unprivilegedIdentity } from './postgres.ts'

const PROGRAM = '/usr/sbin/pgbouncer'
/** The startup parameters that docs/operations.md tells PgBouncer to ignore. */
const IGNORED_PARAMETERS = 'statement_timeout, lock_timeout, idle_in_transaction_session_timeout'

export interface Pooler extends Disposable {
  /** The database, through the pooler. */
  url: string
}

/** The value of `skip` for tests of the pooler. */
export function poolerMissing(): string | false {
  return skipWithout(existsSync(PROGRAM), 'PgBouncer is not installed here')
}

/** Starts PgBouncer in transaction mode in front of a database. @param ignored startup parameters that it ignores */
export async function startPooler(databaseUrl: string, ignored = IGNORED_PARAMETERS): Promise<Pooler> {
  const { hostname, port, username, pathname } = new URL(databaseUrl)
  const folder = mkdtempSync(join(tmpdir(), 'keyway-pooler-'))
  const listenPort = await freePort()
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
${pathname.slice(1)} = host=${hostname} port=${port} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
auth_type = any
pool_mode = transaction
ignore_startup_parameters = ${ignored}
default_pool_size = 30
max_client_conn = 200
log_connections = 0
log_disconnections = 0
`,
  )
  const identity = unprivilegedIdentity()
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid!)
  const child = spawn(PROGRAM, ['-q', join(folder, 'pgbouncer.ini')], { ...identity, stdio: 'ignore' })
  await until('PgBouncer listens', () => isListening(listenPort))
  return {
    url: `postgres://${username}@127.0.0.1:${listenPort}${pathname}`,
    [Symbol.dispose]() {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => resolve(false))
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
