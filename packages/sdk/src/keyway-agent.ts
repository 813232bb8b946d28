#!/usr/bin/env node
import process from 'node:process'
import { parseArgs } from 'node:util'
import { login } from './command/login.ts'
import { logout } from './command/logout.ts'
import { EXIT } from './command/node-process.ts'
import { run } from './command/run.ts'
import { KeywayError } from './errors.ts'

/**
 * The command of the package. Settings are KEYWAY_URL and KEYWAY_API_KEY; without them `run` uses what `login` stored.
 *
 * Exit status: 0 when asked to end, 64 for a wrong command line, 77 (EX_NOPERM) when the service refused permanently,
 * 78 for wrong settings, 1 otherwise.
 */
const HELP = `Usage: keyway-agent [COMMAND] [OPTIONS]

  run      connect with the key of this machine, print events and echo messages (default)
  login    get a key for this machine: approve it in a browser
  logout   forget the key of this machine; it is not revoked

  --url URL       the service (default: KEYWAY_URL, or where this package came from)
  --scope SCOPE   login: what the key may do, repeatable (default: agent:connect)
  --name NAME     login: the key's name (default: the name of this machine)
  --no-browser    login: only print the address
`

const OPTIONS = {
  url: { type: 'string' },
  scope: { type: 'string', multiple: true },
  name: { type: 'string' },
  'no-browser': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

const PERMANENT_REFUSALS = new Set(['invalid_api_key', 'refused', 'account_suspended', 'insufficient_scope'])

class UsageError extends Error {}

try {
  await command(process.argv.slice(2))
} catch (error) {
  if (error instanceof UsageError) console.error(`${error.message}\n\n${HELP}`)
  else if (error instanceof KeywayError) console.error(error.message)
  else throw error
  process.exitCode = exitStatusOf(error)
}

async function command(args: string[]): Promise<void> {
  const { values, positionals } = parseCommandLine(args)
  const [name = 'run', ...rest] = positionals
  if (values.help) return console.log(HELP.trimEnd())
  if (rest.length > 0) throw new UsageError(`Unknown argument "${rest[0]}".`)
  if (name === 'run') return run(values.url)
  if (name === 'logout') return logout(values.url)
  if (name !== 'login') throw new UsageError(`Unknown command "${name}".`)
  const { url, scope = [] } = values
  await login({ url, scopes: scope, name: values.name, opensBrowser: !values['no-browser'] })
}

function parseCommandLine(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function exitStatusOf(error: UsageError | KeywayError): number {
  if (error instanceof UsageError) return EXIT.usage
  if (PERMANENT_REFUSALS.has(error.code)) return EXIT.stoppedForGood
  return error.code === 'invalid_configuration' ? EXIT.wrongSettings : EXIT.failed
}
