import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Config, loadOrCreateSecret } from '../config.ts'
import { createLog } from '../log.ts'
import { CannotStart, UsageError } from '../operator-error.ts'
import type { Services } from '../services.ts'
import type { Terminal } from './terminal.ts'

export type Options = Record<string, string | boolean | undefined>
/** All values of each option that may be repeated. */
export type RepeatedOptions = Record<string, string[] | undefined>

export interface CommandContext {
  /** The positional arguments, as many as `Command.args` names. */
  args: string[]
  options: Options
  repeated: RepeatedOptions
  /**
   * The settings, with the secret of the data directory if none is configured.
   *
   * @throws CannotStart if a setting is invalid, or the SQLite database is missing and the command does not create it
   */
  config(): Config
  /** The settings as configured; checks neither the secret nor the database of the data directory. */
  settings(): Config
  /** The operations on the database, which is opened on the first call and closed when the command ends. */
  services(): Promise<Services>
  /** Prints the data as one JSON document with `--json`, else the text. */
  print(data: unknown, text: string): void
  /** Prints lines of another format (CSV, JSON lines) as they are, also with `--json`. */
  printLines(lines: string): void
}

export interface CommandOption {
  /** The placeholder of the value in the help; an option without it is a flag, which `--no-…` unsets. */
  value?: string
  meaning: string
  required?: boolean
  /** Whether the option may be given several times. */
  repeated?: boolean
}

export interface Command {
  /** For example `users set-role`. */
  name: string
  /** The names of the positional arguments, each required, for example `['WHO', 'ROLE']`. */
  args: string[]
  /** Options besides `--json` and `--help`. */
  options?: Record<string, CommandOption>
  /** Whether the command creates a missing database and secret, and migrates the database (KEYWAY_AUTO_MIGRATE). */
  createsDatabase?: true
  /** One line of the list of commands. */
  summary: string
  /** The text of `--help`: effects, limits, an example. */
  help: string
  /** Resolves with the exit status; undefined means 0. Refusals are thrown as KeywayError or OperatorError. */
  run(context: CommandContext): Promise<number | undefined>
}

/** Runs a command with the arguments after its name. @throws UsageError */
export async function runCommand(command: Command, rest: string[], terminal: Terminal): Promise<number> {
  const { positionals, values, repeated } = parse(command, rest)
  let openedServices: Services | undefined
  const context: CommandContext = {
    args: positionals,
    options: values,
    repeated,
    config: () =>
      command.createsDatabase
        ? loadOrCreateSecret(terminal.loadConfig())
        : withExistingDatabase(terminal.loadConfig()),
    settings: terminal.loadConfig,
    services: async () => {
      const { openServices } = await import('../services.ts')
      const { readServiceTime } = await import('../operations/service-time.ts')
      openedServices ??= await openServices(context.config(), createLog('silent'), readServiceTime)
      return openedServices
    },
    printLines: terminal.print,
    print: (data, text) => terminal.print(values.json ? JSON.stringify(data, null, 2) : text),
  }
  try {
    return (await command.run(context)) ?? 0
  } finally {
    await openedServices?.close()
  }
}

/**
 * The settings with the service's secret, and without automatic migrations. Throws if the SQLite database does not
 * exist: with a wrong data directory a command would otherwise use a new, empty one.
 */
function withExistingDatabase(config: Config): Config {
  const { database } = config
  if (database.engine === 'sqlite' && !existsSync(database.file))
    throw new CannotStart(
      `There is no database at ${database.file}. Set KEYWAY_DATA_DIR or KEYWAY_DATABASE_URL as the service has it, or create one with "keyway migrate".`,
    )
  return loadOrCreateSecret({ ...config, autoMigrate: false })
}

/** Parses the command's arguments, its options, and `--json`, which every command has. @throws UsageError */
function parse(command: Command, rest: string[]) {
  const optionTypes = Object.entries(command.options ?? {}).map(
    ([name, { value, repeated = false }]) =>
      [
        name,
        { type: value === undefined ? ('boolean' as const) : ('string' as const), multiple: repeated },
      ] as const,
  )
  const usage = `See: keyway ${command.name} --help`
  let parsedArgs: { positionals: string[]; values: Record<string, Options[string] | string[]> }
  try {
    parsedArgs = parseArgs({
      args: rest,
      allowPositionals: true,
      allowNegative: true,
      options: { ...Object.fromEntries(optionTypes), json: { type: 'boolean' as const } },
    })
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('\n')[0]!.split('. To specify')[0]}. ${usage}`)
  }
  const { positionals, values } = parsedArgs
  if (positionals.length !== command.args.length)
    throw new UsageError(
      `"keyway ${command.name}" takes ${command.args.join(' ') || 'no arguments'}, but got ${positionals.length}. ${usage}`,
    )
  for (const [name, option] of Object.entries(command.options ?? {}))
    if (option.required && values[name] === undefined)
      throw new UsageError(`"keyway ${command.name}" needs --${name} ${option.value}. ${usage}`)
  const entries = Object.entries(values)
  return {
    positionals,
    values: Object.fromEntries(entries.filter(([, value]) => !Array.isArray(value))) as Options,
    repeated: Object.fromEntries(entries.filter(([, value]) => Array.isArray(value))) as RepeatedOptions,
  }
}

export function table(header: string[], rows: string[][]): string {
  const allRows = [header, ...rows]
  const widths = header.map((_, column) => Math.max(...allRows.map(row => (row[column] ?? '').length)))
  return allRows
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
