import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { openSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { basename, join, relative } from 'node:path'
import { inspect } from 'node:util'
import { observeModules } from './observed-modules.ts'

/*
 * What a test run says and what it keeps secret, written down while it happens; secret-scan.ts compares the two.
 *
 * Every Node process of the run loads this first (record.cjs, through NODE_OPTIONS), and keeps two files of its own:
 *
 * - `.output`: what an operator or a stranger could read. The log at debug, however silent a test keeps it; standard
 *   output and error, also of child processes, so that the last words of one that crashed are there; every HTTP
 *   answer from 400 on, head and body, and every error that the hub tells, as they leave the socket; what was thrown
 *   and caught by nobody; the metrics of each server at its end.
 * - `.secrets`: every secret that the process made or was configured with, and how much it had said before.
 *
 * Outputs are caught where Node lets them out, so nothing must be added for a new route, command or log line.
 * Secrets are learnt from the functions that make them (observed-modules.ts), not from where they leave: so also
 * those are known that no client ever saw. Their names cannot fall behind: a test compares them with every place
 * that draws randomness or makes a MAC. Nothing is written after the fact, since many of these processes are killed.
 */

export interface Journal {
  /** `source` is what the text came out of: log, stdout, … */
  output(source: string, text: string | Uint8Array): void
  secret(kind: string, value: string | Uint8Array): void
}

/** The first line of an `.output` file: which program it was. */
export const PROGRAM = 'program: '
/** Begins the line that tells where what follows came out. */
export const SOURCE_MARK = '\x1e'

export function startRecording(folder: string): void {
  const journal = openJournal(folder)
  recordStream(journal, 'stdout')
  recordStream(journal, 'stderr')
  recordChildren(journal)
  recordErrorAnswers(journal)
  process.on('uncaughtExceptionMonitor', error => journal.output('thrown', `${inspect(error)}\n`))
  observeModules(journal)
}

function openJournal(folder: string): Journal {
  const name = join(folder, `${process.pid}.${process.hrtime.bigint().toString(36)}`)
  const output = openSync(`${name}.output`, 'a', 0o600)
  const secrets = openSync(`${name}.secrets`, 'a', 0o600)
  const head = `${PROGRAM}${programName(process.argv)}\n`
  writeSync(output, head)
  let said = Buffer.byteLength(head)
  let lastSource = ''
  return {
    output(source, text) {
      if (source !== lastSource) said += writeSync(output, `\n${SOURCE_MARK}${source}\n`)
      lastSource = source
      said += typeof text === 'string' ? writeSync(output, text) : writeSync(output, text)
    },
    secret(kind, value) {
      for (const text of spellings(value)) writeSync(secrets, `${kind}\t${said}\t${JSON.stringify(text)}\n`)
    },
  }
}

function spellings(value: string | Uint8Array): string[] {
  if (typeof value === 'string') return [value]
  const bytes = Buffer.from(value)
  return [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
}

/** The script and the words of a command, which are never values: `keyway apps secret`. */
function programName([, ...args]: readonly string[]): string {
  const at = args.findIndex(arg => /\.[cm]?[jt]s$/.test(arg))
  if (at < 0) return 'node'
  const [script = '', ...words] = args.slice(at)
  const file = script.endsWith('.mjs')
    ? basename(script)
    : basename(script) === 'keyway.js'
      ? 'keyway'
      : relative(join(import.meta.dirname, '../../../..'), script)
  return [file, ...words.filter(word => /^[a-z][a-z-]*$/.test(word)).slice(0, 2)].join(' ')
}

/** Streams are made when they are first asked for, and that costs; so it is left to whoever asks. */
function recordStream(journal: Journal, name: 'stdout' | 'stderr'): void {
  const { get } = Object.getOwnPropertyDescriptor(process, name)!
  let known: NodeJS.WriteStream | undefined
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get() {
      const stream: NodeJS.WriteStream = get!.call(process)
      if (stream !== known) tee(stream, journal, name)
      known = stream
      return stream
    },
  })
}

type Write = (chunk: string | Uint8Array, ...rest: unknown[]) => unknown

function tee(stream: { write: unknown }, journal: Journal, source: string): void {
  const write = stream.write as Write
  stream.write = function (this: unknown, chunk: string | Uint8Array, ...rest: unknown[]) {
    journal.output(source, chunk)
    return write.call(this, chunk, ...rest)
  }
}

/** What a process of ours prints, its fatal errors included, which it cannot record itself. */
function recordChildren(journal: Journal): void {
  subscribe('child_process', message => {
    const { process: child } = message as { process: ChildProcess }
    // Its streams are there once spawn has returned, and nothing can have come out of them yet.
    process.nextTick(() => {
      if (!isOurs(child)) return
      const program = programName(child.spawnargs)
      for (const name of ['stdout', 'stderr'] as const) {
        const stream = child[name]
        if (!stream) continue
        const push = stream.push
        // Listening would make the stream flow before the test does.
        stream.push = function (chunk, encoding) {
          if (chunk) journal.output(`${name} of ${program}`, chunk)
          return push.call(this, chunk, encoding)
        }
      }
    })
  })
}

/** Others of the run's children are clients (curl, browsers), which are given secrets to keep. */
function isOurs({ spawnfile = '', spawnargs = [] }: ChildProcess): boolean {
  return spawnfile === process.execPath || spawnargs.some(arg => arg.includes('keyway.js'))
}

const HTTP = /^HTTP\/1\.1 (\d)/
const HUB_ERROR = /^\{"type":"error"/
const CLOSE_FRAME = 0x88
/** Sockets whose last answer was an error: its body may follow in writes of its own. */
const inError = new WeakSet<Socket>()

/** At the socket, because some refusals are written there without a `ServerResponse`. */
function recordErrorAnswers(journal: Journal): void {
  for (const name of ['write', 'end'] as const) {
    const original = Socket.prototype[name] as Write
    Socket.prototype[name] = function (
      this: Socket & { server?: unknown },
      chunk?: unknown,
      ...rest: unknown[]
    ) {
      // Only the side that was connected to has a server.
      if (this.server && (typeof chunk === 'string' || chunk instanceof Uint8Array)) look(this, chunk)
      return original.call(this, chunk as string, ...rest)
    } as never
  }

  function look(socket: Socket, chunk: string | Uint8Array): void {
    const start =
      typeof chunk === 'string' ? chunk.slice(0, 16) : Buffer.from(chunk.subarray(0, 16)).toString('latin1')
    const status = HTTP.exec(start)?.[1]
    if (status) {
      if (status >= '4') inError.add(socket)
      else inError.delete(socket)
    }
    if (inError.has(socket)) journal.output('error answer', chunk)
    else if (HUB_ERROR.test(start) || start.charCodeAt(0) === CLOSE_FRAME) journal.output('hub error', chunk)
  }
}
