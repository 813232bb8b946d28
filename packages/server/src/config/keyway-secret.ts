import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder, restrictToOwner, whyNotWritable } from '../folders.ts'
import type { Config } from './config-type.ts'
import { ConfigError, Mistake } from './mistakes.ts'
import { list, type Parser } from './values.ts'

const MIN_SECRET_BYTES = 32
/** The padding of base64 (RFC 4648 section 4), which may be omitted. */
const PADDING = /={1,2}$/

export const secrets: Parser<Buffer[]> = text => list(secret)(text)

const secret: Parser<Buffer> = text => {
  const base64 = text.replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Buffer.from(base64, 'base64')
  const isBase64 = bytes.toString('base64').replace(PADDING, '') === base64.replace(PADDING, '')
  if (!isBase64 || bytes.length < MIN_SECRET_BYTES)
    throw new Mistake(
      `must be base64 of at least ${MIN_SECRET_BYTES} random bytes (several: comma separated, the first one encrypts)`,
    )
  return bytes
}

/** With PostgreSQL a secret is required: nodes cannot each generate one. */
export function secretMistakes(config: Config): string[] {
  const isRefused = config.database.engine === 'postgres' && config.secrets.length === 0
  return isRefused
    ? [
        'KEYWAY_SECRET is missing: with PostgreSQL every node needs the same one. ' +
          'Example: KEYWAY_SECRET_FILE=/run/secrets/keyway, made with: openssl rand -base64 32',
      ]
    : []
}

const SECRET_BYTES = 32

/**
 * The settings with a secret: the configured one, or with SQLite that of the data directory, which is created on the
 * first start (directory mode 0700, file mode 0600). If a database exists, a missing secret is never generated anew,
 * since stored values need the lost one.
 *
 * @throws ConfigError
 */
export function loadOrCreateSecret(config: Config): Config {
  if (config.database.engine === 'postgres') return config
  makeDataDir(config.dataDir)
  if (config.secrets.length > 0) return config
  const file = join(config.dataDir, 'secret')
  if (!existsSync(file)) {
    if (existsSync(config.database.file))
      throw new ConfigError([
        `The database ${config.database.file} exists but its secret ${file} is missing: restore the file, or set KEYWAY_SECRET to its content.`,
      ])
    createSecret(file)
  }
  restrictToOwner(file)
  return { ...config, secrets: readSecret(file) }
}

function makeDataDir(dir: string): void {
  try {
    makeFolder(dir)
  } catch (cause) {
    throw new ConfigError([
      `KEYWAY_DATA_DIR ${JSON.stringify(dir)} cannot be created: ${whyNotWritable(cause)}. Example: KEYWAY_DATA_DIR=/var/lib/keyway`,
    ])
  }
}

/** Writes to a temporary file and links it atomically, so that two concurrent first starts read the same secret. */
function createSecret(file: string): void {
  const temporaryFile = `${file}.${process.pid}`
  try {
    writeFileSync(temporaryFile, `${randomBytes(SECRET_BYTES).toString('base64')}\n`, {
      mode: 0o600,
      flush: true,
    })
    linkSync(temporaryFile, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw new ConfigError([
      `The secret cannot be written to ${file}: ${whyNotWritable(error)}. Check KEYWAY_DATA_DIR, or set KEYWAY_SECRET.`,
    ])
  } finally {
    rmSync(temporaryFile, { force: true })
  }
}

function readSecret(file: string): Buffer[] {
  try {
    return secrets(readFileSync(file, 'utf8').trim())
  } catch (error) {
    const reason =
      error instanceof Mistake ? error.message : `cannot be read (${(error as NodeJS.ErrnoException).code})`
    throw new ConfigError([`The secret in ${file} ${reason}: restore the original file.`])
  }
}
