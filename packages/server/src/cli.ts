import { inspect } from 'node:util'
import { runCommand } from './cli/command.ts'
import { findCommand, loadCommand } from './cli/commands.ts'
import { helpOf, overview } from './cli/help.ts'
import { processTerminal, type Terminal } from './cli/terminal.ts'
import { KeywayError } from './errors.ts'
import { EXIT_FAILED, OperatorError, UsageError } from './operator-error.ts'
import { VERSION } from './version.ts'

const DEFAULT_COMMAND = 'serve'

/** Runs one command line and ends the process with one of the exit statuses in operator-error.ts, or 0. */
export async function main(argv: string[]): Promise<void> {
  // Node's diagnostic reports would otherwise contain the environment, and so every secret setting.
  process.report.excludeEnv = true
  const allowExit = failOnEarlyExit()
  process.exitCode = await run(argv, processTerminal)
  allowExit()
  // Handles that a library leaves open (an idle pool, a timer) must not keep a finished command alive.
  await flush(process.stdout)
  process.exit()
}

/**
 * Turns an unexpected exit into a failure: Node ends a process with status 0 when nothing keeps its event loop alive,
 * even while a command still waits. Applies until the returned function is called.
 */
function failOnEarlyExit(): () => void {
  const fail = (status: number) => {
    if (status !== 0) return
    processTerminal.printError(
      'Keyway ended before its command had finished: nothing was left to wait for. This is a bug; please report it with the last lines of the log.',
    )
    process.exitCode = EXIT_FAILED
  }
  process.on('exit', fail)
  return () => process.off('exit', fail)
}

export async function run(argv: string[], terminal: Terminal): Promise<number> {
  const fail = (message: string, status: number) => {
    terminal.printError(message)
    return status
  }
  try {
    return await dispatch(argv, terminal)
  } catch (error) {
    if (error instanceof OperatorError) return fail(error.message, error.exitStatus)
    if (error instanceof KeywayError) return fail(error.message + causeOf(error), EXIT_FAILED)
    return fail(inspect(error), EXIT_FAILED)
  }
}

/** The cause, such as the host that did not answer: shown to the operator, never to API clients. */
function causeOf({ extras }: KeywayError): string {
  return extras.cause instanceof Error && extras.cause.message ? ` (${extras.cause.message})` : ''
}

async function dispatch(argv: string[], terminal: Terminal): Promise<number> {
  const print = (text: string) => {
    terminal.print(text)
    return 0
  }
  if (argv.length === 1 && argv[0] === '--version') return print(VERSION)
  const asksForHelp = argv.includes('--help') || argv.includes('-h') || argv[0] === 'help'
  const args = argv.filter(word => !['--help', '-h'].includes(word))
  if (args[0] === 'help') args.shift()
  const namesCommand = args.length > 0 && !args[0]!.startsWith('-')
  const match = findCommand(namesCommand ? args : [DEFAULT_COMMAND, ...args])
  if (asksForHelp && args.length === 0) return print(await overview())
  if (!match) {
    if (asksForHelp) return print(await overview(args[0]))
    throw new UsageError(`There is no command "${args.slice(0, 2).join(' ')}". See: keyway --help`)
  }
  const command = await loadCommand(match.name)
  if (asksForHelp) return print(helpOf(command))
  return runCommand(command, match.rest, terminal)
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise(resolve => stream.write('', () => resolve()))
}
