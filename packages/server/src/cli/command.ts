import type { Config } from '../config.ts'
import type { Services } from '../services.ts'

/** What a command may ask for and where its answer goes. */
export interface CommandContext {
  /** What stands after the command's own words, as many as `args` names. */
  args: string[]
  options: Record<string, string | boolean | undefined>
  config(): Config
  /** The verbs on the opened database; closed when the command ends. */
  services(): Promise<Services>
  /** With `--json` the data as one JSON document, else the lines for people. */
  print(data: unknown, text: string): void
}

export interface Command {
  /** `users set-role` */
  name: string
  /** The positional arguments, each required: `['WHO', 'ROLE']`. */
  args: string[]
  /** Besides `--json` and `--help`: name to what stands for its value in the help (none: a switch), and what it means. */
  options?: Record<string, { value?: string; meaning: string; required?: boolean }>
  /** One line of the list of commands. */
  summary: string
  /** What `--help` teaches beyond that: what happens, what does not, an example. */
  help: string
  /** The exit status; nothing means 0. Refusals are thrown as KeywayError or CommandFailed. */
  run(context: CommandContext): Promise<number | undefined>
}

/** The command was understood and could not be done; the message is one sentence with what to do. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
}

/** Columns of equal width, as people read them. */
export function table(header: string[], rows: string[][]): string {
  const all = [header, ...rows]
  const widths = header.map((_, column) => Math.max(...all.map(row => (row[column] ?? '').length)))
  return all
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
