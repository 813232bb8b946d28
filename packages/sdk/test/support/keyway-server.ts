import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../../../server/test/support/free-port.ts'
import { until } from '../../../server/test/support/patience.ts'
import { quickFolder } from '../../../server/test/support/quick-folder.ts'
import { Keyway } from '../../src/client.ts'
import { memoryTokenStore, type TokenStore } from '../../src/token-store.ts'

export interface Person {
  url: string
  /** A client signed in as a new user. */
  keyway: Keyway
  tokens: TokenStore
}

export interface KeywayServer extends Person {
  /** Stops with SIGTERM, and starts on the same data and port. */
  restart(): Promise<void>
  /** Runs `keyway …` with the service's settings; returns its standard output. */
  command(...args: string[]): Promise<string>
  /** The environment of the service, with which a command finds its data. */
  settings: NodeJS.ProcessEnv
}

interface TestContext {
  after(fn: () => Promise<void> | void): void
}

const LAUNCHER = fileURLToPath(new URL('../../../server/bin/keyway.js', import.meta.url))

/** Starts the service in a process, so that tests also work on runtimes that cannot run the server. */
export async function startKeyway(
  t: TestContext,
  settings: Record<string, string> = {},
): Promise<KeywayServer> {
  const { url, restart, command, close, settings: environment } = await startService(settings)
  t.after(close)
  return { ...(await newPerson(url)), restart, command, settings: environment }
}

/** One service shared by the tests of a file, each with its own user. */
export function sharedKeyway(): () => Promise<Person> {
  let service: ReturnType<typeof startService> | undefined
  after(async () => (await service)?.close())
  return async () => {
    service ??= startService({ KEYWAY_MAGIC_LINK_NETWORK_LIMITS: '100/minute' })
    return newPerson((await service).url)
  }
}

async function startService(settings: Record<string, string>) {
  const dataDir = mkdtempSync(join(quickFolder(), 'keyway-sdk-'))
  const port = await freePort()
  const inheritedVariables = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('KEYWAY_') && name !== 'PORT',
  )
  const env = {
    ...Object.fromEntries(inheritedVariables),
    KEYWAY_PORT: String(port),
    KEYWAY_DATA_DIR: dataDir,
    ...settings,
  }
  let child = await serve(env)
  return {
    url: `http://localhost:${port}`,
    settings: env,
    async restart() {
      await stopProcess(child, 'SIGTERM')
      child = await serve(env)
    },
    command: async (...args: string[]) =>
      (await promisify(execFile)('node', [LAUNCHER, ...args], { env })).stdout,
    async close() {
      await stopProcess(child, 'SIGKILL')
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

async function newPerson(url: string): Promise<Person> {
  const tokens = memoryTokenStore()
  const keyway = new Keyway({ url, tokens })
  await signIn(keyway, url, `${randomUUID()}@example.com`)
  return { url, keyway, tokens }
}

async function serve(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn('node', [LAUNCHER, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const ready = new Promise<void>((resolve, reject) => {
    const collect = (chunk: Buffer) => {
      output += chunk
      if (output.includes('Keyway is ready')) resolve()
    }
    child.stdout!.on('data', collect)
    child.stderr!.on('data', collect)
    child.once('exit', status => reject(new Error(`the service ended with ${status}:\n${output}`)))
  })
  await ready
  return child
}

async function stopProcess(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

async function signIn(keyway: Keyway, url: string, email: string): Promise<void> {
  const { login_id } = await keyway.sendMagicLink({ email })
  await keyway.verifyMagicLink({ login_id, code: await codeFromInbox(url, email), email })
}

/** Polls the inbox until the outbox has delivered the mail. */
function codeFromInbox(url: string, email: string): Promise<string> {
  const address = `${url}/inbox?to=${encodeURIComponent(email)}`
  return until(`a mail for ${email}`, async () => {
    const response = await fetch(address, { headers: { accept: 'application/json' } })
    const { data } = (await response.json()) as { data: { code: string | null }[] }
    return data.find(mail => mail.code)?.code
  })
}
