import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPostgresBinaries, unprivilegedIdentity } from '../support/postgres.ts'

/** The files that docs/operations.md, "High availability", installs; the cluster of this test runs them. */
const DEPLOY_FOLDER = join(import.meta.dirname, '..', '..', '..', '..', 'deploy', 'high-availability')

const PROGRAMS = {
  'etcd-server': '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  haproxy: '/usr/sbin/haproxy',
}

/** Debian's packages that this machine lacks. */
export function missingPackages(): string[] {
  const missingPrograms = Object.entries(PROGRAMS).filter(([, program]) => !existsSync(program))
  return [...missingPrograms.map(([name]) => name), ...(findPostgresBinaries() ? [] : ['postgresql'])]
}

/** One of the machines of docs/operations.md, with a loopback address of its own. */
export interface Machine {
  name: string
  address: string
  start(): void
  /** Kills all its processes at once, as a loss of power does. */
  kill(): void
}

export interface MachineOptions {
  folder: string
  name: string
  address: string
  /** The first three bytes of the addresses of all machines. */
  network: string
  synchronous: boolean
  /** The port at which the other member reaches this one's PostgreSQL; null on the machine that only votes. */
  replicationPort: number | null
}

export function createMachine(options: MachineOptions): Machine {
  const { folder, name, address, network, synchronous, replicationPort } = options
  const home = join(folder, name)
  mkdirSync(home)
  giveToPostgres(home)
  const log = openSync(join(home, 'log'), 'a')
  const runningPrograms: ChildProcess[] = []
  return {
    name,
    address,
    start() {
      runningPrograms.push(run(PROGRAMS['etcd-server'], [], etcdSettings(), log))
      if (replicationPort !== null) runningPrograms.push(run(PROGRAMS.patroni, [patroniFile()], {}, log))
    },
    kill() {
      for (const child of runningPrograms.splice(0)) child.kill('SIGKILL')
      killPostgres(join(home, 'data'))
    },
  }

  function etcdSettings(): Record<string, string> {
    const configuration = withOwnAddress(readDeployFile('etcd.env'))
      .replace('ETCD_NAME=db1', `ETCD_NAME=${name}`)
      .replace('/var/lib/etcd/keyway', join(home, 'etcd'))
    const lines = configuration.split('\n').filter(line => line.startsWith('ETCD_'))
    return Object.fromEntries(lines.map(line => line.split(/=(.*)/s).slice(0, 2)))
  }

  /** Writes Patroni's configuration with the folders of this run, and without TLS, which needs certificates. */
  function patroniFile(): string {
    const file = join(home, 'patroni.yml')
    const configuration = withOwnAddress(readDeployFile('patroni.yml'))
      .replace('name: db1', `name: ${name}`)
      .replace(`connect_address: ${address}:5432`, `connect_address: 127.0.0.1:${replicationPort}`)
      .replace('/var/lib/postgresql/15/keyway', join(home, 'data'))
      .replace('/var/lib/postgresql/patroni.pgpass', join(home, 'pgpass'))
      .replace('/usr/lib/postgresql/15/bin', findPostgresBinaries()!)
      .replace('/var/run/postgresql', home)
      .replace('ssl: "on"', 'ssl: "off"')
      .replaceAll('hostssl', 'host')
      .replaceAll('10.0.0.0/24', '127.0.0.0/8')
      .replace('synchronous_mode: true', `synchronous_mode: ${synchronous}`)
    writeFileSync(file, configuration)
    return file
  }

  /** Puts this machine's address in place of db1's, which deploy files have, except in lines that list all machines. */
  function withOwnAddress(text: string): string {
    return text
      .split('\n')
      .map(line => (line.includes('10.0.0.2') ? line : line.replaceAll('10.0.0.1', address)))
      .map(line => withNetwork(line, network))
      .join('\n')
  }
}

/** Starts HAProxy as on a machine with a Keyway node, listening on the given port. */
export function startHaproxy(folder: string, network: string, port: number): ChildProcess {
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    withNetwork(readDeployFile('haproxy.cfg'), network).replace('127.0.0.1:5432', `127.0.0.1:${port}`),
  )
  return run(PROGRAMS.haproxy, ['-db', '-f', file], {}, openSync(join(folder, 'haproxy.log'), 'a'))
}

/** Gives a file to the user that runs PostgreSQL. */
export function giveToPostgres(path: string): void {
  const { uid, gid } = unprivilegedIdentity()
  if (uid !== undefined) chownSync(path, uid, gid!)
}

function withNetwork(text: string, network: string): string {
  return text.replaceAll(/10\.0\.0\.([123])\b/g, `${network}.$1`)
}

/** Kills the server, which Patroni started in a session of its own, and its child processes. */
function killPostgres(data: string): void {
  const file = join(data, 'postmaster.pid')
  if (!existsSync(file)) return
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
  const listing = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
  const children = listing.stdout.split('\n').filter(Boolean).map(Number)
  for (const each of [pid, ...children]) {
    try {
      process.kill(each, 'SIGKILL')
    } catch {
      // The process has ended already.
    }
  }
}

function run(program: string, words: string[], settings: Record<string, string>, log: number): ChildProcess {
  const { PATH, LANG = 'C.UTF-8' } = process.env
  return spawn(program, words, {
    ...unprivilegedIdentity(),
    cwd: '/',
    env: { PATH, LANG, ...settings },
    stdio: ['ignore', log, log],
  })
}

function readDeployFile(file: string): string {
  return readFileSync(join(DEPLOY_FOLDER, file), 'utf8')
}
