import { flushCompileCache } from 'node:module'
import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { type Config, configWarnings } from '../config.ts'
import { isOpenToOthers } from '../folders.ts'
import { createLog, createProcessLog } from '../log.ts'
import { isLoopbackHost } from '../network.ts'
import { OperatorError } from '../operator-error.ts'
import type { Supervision } from '../processes/supervised.ts'
import type { ServerOptions } from '../server.ts'
import type { Command } from './command.ts'

/** docs/contract.md promises an exit within 10 s of the signal; work that takes longer than this is abandoned. */
const SHUTDOWN_DEADLINE_MS = 9_000
/** The longest delay of a Node timer. */
const MAX_TIMER_MS = 2 ** 31 - 1

export const commands: Command[] = [
  {
    name: 'serve',
    args: [],
    createsDatabase: true,
    summary: 'Run the service (the default command).',
    help: `Checks the settings, migrates the database, listens, and prints its URLs. SIGTERM or Ctrl-C drains it: agents
are notified, queued mail stays queued, and it exits with 0 within ten seconds. With KEYWAY_PROCESSES above 1, SIGHUP
replaces the processes one after the other.`,
    async run(context) {
      return serve(context.config())
    },
  },
]

/**
 * Runs the service until SIGTERM or SIGINT; resolves with the exit status once it has drained.
 *
 * @throws OperatorError after a failure that needs a restart
 */
async function serve(config: Config): Promise<number> {
  // A closed terminal or log reader must not stop the service.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  const stop = untilSignal()
  if (config.processes === 1) return serveInThisProcess(config, stop)
  const { default: cluster } = await import('node:cluster')
  return cluster.isWorker ? serveSupervised(config, stop) : superviseProcesses(config, stop)
}

async function serveSupervised(config: Config, stop: Promise<void>): Promise<number> {
  const { joinSupervisor } = await import('../processes/supervised.ts')
  const supervision = await joinSupervisor()
  return serveInThisProcess(config, Promise.race([stop, supervision.supervisorEnded]), supervision)
}

async function superviseProcesses(config: Config, stop: Promise<void>): Promise<number> {
  warn(configWarnings(config))
  const { supervise } = await import('../processes/supervisor.ts')
  return supervise({
    processes: config.processes,
    log: createLog(config.logLevel),
    stop,
    onReady: ({ url, hasAdministrator }) => announceReady(url, config, hasAdministrator),
  })
}

/** @param supervision the link to the supervisor, if this is one of several processes */
async function serveInThisProcess(
  config: Config,
  stop: Promise<void>,
  supervision?: Supervision,
): Promise<number> {
  if (!supervision) warn(configWarnings(config))
  // Otherwise Node would exit during the start, since not everything that the start awaits keeps the event loop alive.
  const keepAlive = setInterval(() => {}, MAX_TIMER_MS)
  const { startServer } = await import('../server.ts')
  const server = await startServer(config, supervision && optionsOf(supervision, config))
  warn(dataDirWarnings(config))
  const hasAdministrator = await server.services.storage.store.users.hasAdministrator()
  if (supervision) supervision.ready(server.url, hasAdministrator)
  else announceReady(server.url, config, hasAdministrator)
  endLightStart()
  disableConcurrentMarking()
  const failure = await Promise.race([stop, server.failure])
  if (failure) console.error(`Keyway is stopping: ${failure.message}.`)
  await supervision?.reportFinalMetrics()
  await Promise.race([server.close(), shutdownDeadline()])
  clearInterval(keepAlive)
  if (failure)
    throw new OperatorError(
      `Keyway stopped after a failure: ${failure.message}. Start it again, or let systemd do so.`,
    )
  return 0
}

function optionsOf({ number, shareMetrics }: Supervision, { logLevel }: Config): ServerOptions {
  return { log: createProcessLog(logLevel, number), shareMetrics }
}

function warn(warnings: string[]): void {
  for (const warning of warnings) console.warn(`Warning: ${warning}`)
}

/**
 * The warning if other users have permissions on the data directory. Only the service's user can read its files, but
 * others with write permission on the directory could replace them.
 */
function dataDirWarnings({ database, dataDir }: Config): string[] {
  if (database.engine !== 'sqlite' || !isOpenToOthers(dataDir)) return []
  return [
    `other users of this machine have permissions on the data directory ${dataDir}: run chmod 700 ${dataDir}`,
  ]
}

/** Resets the V8 flag that bin/light-start.js set, and writes the compile cache, which a killed process would lose. */
function endLightStart(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
  flushCompileCache()
}

/**
 * On one core, V8's concurrent marking threads compete with the service for some 20 ms at a time. Without them the
 * main thread marks in small steps, at the same throughput: the slowest of a thousand exchanges at half load takes 6 ms
 * instead of 23. Set after the start, since the compile cache is valid for one set of flags.
 */
function disableConcurrentMarking(): void {
  if (availableParallelism() === 1) setFlagsFromString('--no-concurrent-marking')
}

/** Resolves at the first SIGTERM or SIGINT. Ignores a second one: on Ctrl-C the terminal and npm both send one. */
function untilSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve())
  return promise
}

function shutdownDeadline(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, SHUTDOWN_DEADLINE_MS).unref())
}

/**
 * Prints the URLs on a terminal. Otherwise prints the JSON line `Keyway is ready`, at every log level, since scripts
 * wait for it; before it a line of the log if the service has no administrator.
 */
function announceReady(url: string, config: Config, hasAdministrator: boolean): void {
  if (process.stdout.isTTY) {
    console.log(readyMessage(url, config, hasAdministrator))
    return
  }
  if (!hasAdministrator)
    createLog(config.logLevel).info(
      {},
      'nobody administers this service yet: set KEYWAY_ADMIN_EMAILS and sign in, or run keyway users set-role',
    )
  createLog('info').info({ url }, 'Keyway is ready')
}

function readyMessage(url: string, config: Config, hasAdministrator: boolean): string {
  const lines = [
    `Keyway is ready on ${url}`,
    `  Sign in     ${url}/sign-in`,
    `  API         ${url}/docs`,
    `  Hub         ${url.replace(/^http/, 'ws')}/hub`,
  ]
  if (config.mail.kind === 'inbox') {
    // The page `/inbox` is served on loopback only.
    const inbox = isLoopbackHost(config.host) ? `${url}/inbox` : 'npx keyway inbox'
    lines.push(`  Inbox       ${inbox}   (mail stays on this machine; KEYWAY_MAIL_URL sends it)`)
  }
  if (hasAdministrator) lines.push(`  Administer  ${url}/admin`)
  else if (config.adminEmails.length > 0)
    lines.push(`  Administer  nobody yet: sign in as ${config.adminEmails[0]}`)
  else lines.push('  Administer  nobody yet: sign in, then npx keyway users set-role YOUR_ADDRESS admin')
  return lines.join('\n')
}
