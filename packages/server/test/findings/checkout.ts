import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { WebSocket } from 'ws'
import type { CommandResult } from '../support/command-line.ts'
import type { EngineName } from '../support/engines.ts'
import { type CallResult, call, NODE_SECRET } from '../support/nodes.ts'
import { inTime, until } from '../support/patience.ts'
import { createEmptyDatabase } from '../support/postgres.ts'
import { environment, type ServedProcess, serve, temporaryFolder } from '../support/serve.ts'

/** Registers what is cleaned up after a probe. */
export type CleanUps = Pick<TestContext, 'after'>

export interface Probe {
  /** The number in docs/findings.md of the finding that the probe attacks. */
  finding: string
  title: string
  engines: readonly EngineName[]
  /** @throws AssertionError if the hole is open */
  attack(engine: EngineName, t: CleanUps): Promise<void>
}

/** All probes, in the order of their definition. */
export const probes: Probe[] = []

export function probe(
  finding: string,
  title: string,
  engines: Probe['engines'],
  attack: Probe['attack'],
): void {
  probes.push({ finding, title, engines, attack })
}

export const BOTH_ENGINES = ['sqlite', 'postgres'] as const

let checkoutFolder = ''

/** Sets the folder of the checkout whose server is attacked from now on. */
export function useCheckout(path: string): void {
  checkoutFolder = resolve(path)
}

const launcher = () => join(checkoutFolder, 'packages/server/bin/keyway.js')

export interface Target extends ServedProcess {
  port: number
  settings: Record<string, string>
  call(method: string, path: string, options?: Parameters<typeof call>[3]): Promise<CallResult>
  post(path: string, body: object, headers?: Record<string, string>): Promise<CallResult>
  /** The token and the code of the newest mail to this address, once it was sent. */
  mailTo(email: string): Promise<{ token: string; code: string }>
  /** Signs in; returns the access token. */
  signIn(email: string): Promise<string>
  createKey(accessToken: string, body?: object): Promise<{ id: string; key: string }>
  /** Signs in with this address, and connects an agent with a new key of the account. */
  agentOf(email: string): Promise<Agent>
  /** CPU time that the process has used, in milliseconds. */
  cpuMs(): number
}

export interface Agent {
  socket: WebSocket
  accessToken: string
  connectionId: string
  /** Frames after `ready`. */
  frames: { type: string; [name: string]: unknown }[]
  closed: Promise<number>
}

/** @throws AssertionError if the condition is false, which means an open hole; its message says what was seen */
export function expectTrue(condition: boolean, seen: string): void {
  assert.ok(condition, seen)
}

/** @throws AssertionError if the values differ, which means an open hole */
export function expectEqual(wanted: unknown, seen: unknown, what: string): void {
  assert.deepEqual(seen, wanted, `${what}: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`)
}

/** Settings with a folder and an empty database of their own. */
export async function freshSettings(engine: EngineName, t: CleanUps): Promise<Record<string, string>> {
  const { path, remove } = temporaryFolder()
  t.after(remove)
  const settings = {
    KEYWAY_DATA_DIR: path,
    KEYWAY_JOURNAL_DIR: join(path, 'journal'),
    KEYWAY_PORT: '0',
    KEYWAY_SECRET: NODE_SECRET,
    KEYWAY_MAIL_URL: 'inbox:',
    KEYWAY_TRUSTED_PROXIES: '127.0.0.1/32',
  }
  if (engine === 'sqlite') return settings
  const database = await createEmptyDatabase()
  t.after(database.drop)
  return { ...settings, KEYWAY_DATABASE_URL: database.url }
}

export async function start(
  engine: EngineName,
  t: CleanUps,
  settings: Record<string, string> = {},
): Promise<Target> {
  return startWith({ ...(await freshSettings(engine, t)), ...settings }, t)
}

/** The settings that the checkout knows: an earlier version refuses to start with others. */
export function supportedSettings(settings: Record<string, string>): Record<string, string> {
  const documentation = readFileSync(join(checkoutFolder, 'docs/configuration.md'), 'utf8')
  return Object.fromEntries(
    Object.entries(settings).filter(([name]) => documentation.includes(`\`${name}\``)),
  )
}

/** All running servers. A link is read from the output of all, since any node may deliver a mail and print its link. */
const runningServers = new Set<ServedProcess>()

/** Starts the checkout's server with exactly these settings. */
export async function startWith(settings: Record<string, string>, t: CleanUps): Promise<Target> {
  const server = await serve(settings, launcher())
  runningServers.add(server)
  t.after(() => {
    runningServers.delete(server)
    return server.end('SIGKILL')
  })
  const port = Number(settings.KEYWAY_PORT) || Number(new URL(server.url).port)
  const origin = `http://127.0.0.1:${port}`
  const callTarget: Target['call'] = (method, path, options) => call(origin, method, path, options)
  const target: Target = {
    ...server,
    port,
    settings,
    call: callTarget,
    post: (path, body, headers) => callTarget('POST', path, { body, headers }),
    mailTo: email =>
      until(`a mail to ${email}`, () => {
        const linkPattern = new RegExp(
          `for ${email.replace(/[+.]/g, '\\$&')}: \\S*token=([\\w-]{43}).*code (\\d{8})`,
        )
        const [, token, code] =
          linkPattern.exec([...runningServers].map(each => each.output()).join('')) ?? []
        return token && code ? { token, code } : null
      }),
    async signIn(email) {
      await target.post('/auth/send-magic-link', { email })
      const { token } = await target.mailTo(email)
      return (await bodyWithStatus(200, target.post('/auth/verify-magic-link', { email, token })))
        .access_token
    },
    createKey: (token, body = {}) => bodyWithStatus(201, callTarget('POST', '/v1/api-keys', { token, body })),
    async agentOf(email) {
      const accessToken = await target.signIn(email)
      const { key } = await target.createKey(accessToken)
      return connectAgent(target, accessToken, key)
    },
    cpuMs() {
      const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return 10 * (Number(fields[11]) + Number(fields[12]))
    },
  }
  return target
}

export function openSockets({ port }: Pick<Target, 'port'>, count: number, t: CleanUps): Socket[] {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => {}))
  t.after(() => sockets.forEach(socket => void socket.destroy()))
  return sockets
}

const PIPELINE_LENGTH = 40

/** Sends `count` requests, PIPELINE_LENGTH at once on each connection; returns the distinct response statuses. */
export async function pipeline(
  server: Pick<Target, 'port'>,
  count: number,
  path: string,
  body: object,
  t: CleanUps,
  token = '',
): Promise<Set<string>> {
  const json = JSON.stringify(body)
  const credential = token && `Authorization: Bearer ${token}\r\n`
  const request = `POST ${path} HTTP/1.1\r\nHost: x\r\n${credential}Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  const statuses = openSockets(server, count / PIPELINE_LENGTH, t).map(async socket => {
    let received = ''
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
    })
    socket.write(request.repeat(PIPELINE_LENGTH))
    const statusesSoFar = () => [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status!)
    await until('all answers', () => socket.destroyed || statusesSoFar().length === PIPELINE_LENGTH, 60_000)
    socket.destroy()
    return statusesSoFar()
  })
  return new Set((await Promise.all(statuses)).flat())
}

export async function connectAgent(
  { port, post }: Pick<Target, 'port' | 'post'>,
  accessToken: string,
  key: string,
): Promise<Agent> {
  const { token } = await bodyWithStatus(200, post('/auth/agent-token', { api_key: key }))
  const headers = { authorization: `Bearer ${token}` }
  const socket = new WebSocket(`ws://127.0.0.1:${port}/hub`, 'keyway.hub.v1', { headers })
  const frames: Agent['frames'] = []
  const ready = Promise.withResolvers<string>()
  socket.on('error', ready.reject)
  socket.on('message', data => {
    const frame = JSON.parse(String(data))
    if (frame.type === 'ready') ready.resolve(frame.connection_id)
    else frames.push(frame)
  })
  const closed = new Promise<number>(resolve => socket.once('close', resolve))
  return { socket, accessToken, connectionId: await inTime('ready', ready.promise), frames, closed }
}

/** Runs a command of the checkout in a process of its own. */
export function command(settings: Record<string, string>, ...words: string[]): Promise<CommandResult> {
  return new Promise(done =>
    execFile(process.execPath, [launcher(), ...words], { env: environment(settings) }, (error, out, err) =>
      done({ status: error ? Number(error.code) : 0, out, err }),
    ),
  )
}

export async function output(settings: Record<string, string>, ...words: string[]): Promise<string> {
  const { status, out, err } = await command(settings, ...words)
  if (status !== 0) throw new Error(`keyway ${words.join(' ')}: ${err}`)
  return out
}

/**
 * Returns the body of an answer on which the probe depends. Another status is not a finding, so it throws no
 * AssertionError.
 */
export async function bodyWithStatus(
  status: number,
  answer: Promise<CallResult>,
): Promise<CallResult['body']> {
  const { status: actualStatus, body } = await answer
  if (actualStatus !== status)
    throw new Error(`${actualStatus} instead of ${status}: ${JSON.stringify(body)}`)
  return body
}

export const moduleOf = (path: string) =>
  import(pathToFileURL(join(checkoutFolder, 'packages/server/src', path)).href)
