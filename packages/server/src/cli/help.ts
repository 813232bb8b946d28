import { type Command, table } from './command.ts'
import { commandNames, loadCommand } from './commands.ts'

/** A usage line with more optional options than this has `[OPTIONS]` instead of them. */
const MAX_SHOWN_OPTIONS = 5

/** The list of the commands that begin with `word`, such as `users`; of all commands if it is absent or begins none. */
export async function overview(word?: string): Promise<string> {
  const names = commandNames.filter(name => !word || name.split(' ')[0] === word)
  const commands = await Promise.all((names.length > 0 ? names : commandNames).map(loadCommand))
  const rows = commands.map(command => [`  ${signature(command)}`, command.summary])
  return `Keyway: e-mail sign-in, API keys, and a hub whose connections end with their key.

Usage: keyway COMMAND [--json]

${table(['Commands', ''], rows)}

keyway COMMAND --help shows details; keyway --version prints the version. Settings are environment variables, those of the server: docs/configuration.md.
Exit status: 0 success, 1 failure, 64 invalid command line, 78 invalid setting.`
}

export function helpOf(command: Command): string {
  const options = Object.entries(command.options ?? {}).map(([name, option]) => [
    `  ${flag(name, option.value)}`,
    option.meaning,
  ])
  const rows = [...options, ['  --json', 'answer with JSON'], ['  --help', 'show this']]
  return `${command.summary}

Usage: keyway ${signature(command)}

${command.help}

${table(['Options', ''], rows)}`
}

/** The usage line: all required options, and the optional ones if they are few. */
function signature(command: Command): string {
  const options = Object.entries(command.options ?? {})
  const requiredOptions = options
    .filter(([, option]) => option.required)
    .map(([name, { value }]) => flag(name, value))
  const optionalOptions = options
    .filter(([, option]) => !option.required)
    .map(([name, { value }]) => `[${flag(name, value)}]`)
  const shownOptionals = optionalOptions.length > MAX_SHOWN_OPTIONS ? ['[OPTIONS]'] : optionalOptions
  return [command.name, ...command.args, ...requiredOptions, ...shownOptionals].join(' ')
}

function flag(name: string, value: string | undefined): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`
}
