import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { openSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { basename, join, relative } from 'node:path'
import { inspect } from 'node:util'
import { observeModules } from './observed-modules.ts'

/*
 * Records the output and the secrets of a test run; secret-scan.ts searches the output for the secrets.
 *
 * Every Node process of the run loads this first (record.cjs, through NODE_OPTIONS), and writes two files:
 *
 * - `.output`: everything that an operator or a client could read. The log at debug, whatever level the test sets;
 *   standard output and error, also of child processes, including crashes; every HTTP response from 400 on and every
 *   error frame of the hub, as written to the socket; uncaught exceptions; the metrics of each server at its end.
 * - `.secrets`: every secret that the process created or was configured with, and the length of the output before it.
 *
 * Output is recorded in Node's own functions, so new routes, commands and log lines are covered. Secrets are recorded
 * in the functions that create them (observed-modules.ts), so those that no client ever saw are included. A test
 * compares these functions with every use of randomness and MACs. Records are written at once, since many of the
 * processes are killed.
 */

export interface Recorder {
  /** @param source the stream of the text: log, stdout, … */
  output(source: string, text: string | Uint8Array): void
  secret(kind: string, value: string | Uint8Array): void
}

/** The beginning of the first line of an `.output` file; the name of the program follows. */
export const PROGRAM = 'program: '
/** The beginning of a line that names the source of the text below it. */
export const SOURCE_MARK = '\x1e'

export function startRecording(folder: string): void {
  const recorder = openRecorder(folder)
  recordStream(recorder, 'stdout')
  recordStream(recorder, 'stderr')
  recordChildren(recorder)
  recordErrorAnswers(recorder)
  process.on('uncaughtExceptionMonitor', error => recorder.output('thrown', `${inspect(error)}\n`))
  observeModules(recorder)
}

function openRecorder(folder: string): Recorder {
  const name = join(folder, `${process.pid}.${process.hrtime.bigint().toString(36)}`)
  const outputFile = openSync(`${name}.output`, 'a', 0o600)
  const secretsFile = openSync(`${name}.secrets`, 'a', 0o600)
  const head = `${PROGRAM}${programName(process.argv)}\n`
  writeSync(outputFile, head)
  let outputLength = Buffer.byteLength(head)
  let lastSource = ''
  return {
    output(source, text) {
      if (source !== lastSource) outputLength += writeSync(outputFile, `\n${SOURCE_MARK}${source}\n`)
      lastSource = source
      outputLength += typeof text === 'string' ? writeSync(outputFile, text) : writeSync(outputFile, text)
    },
    secret(kind, value) {
      for (const text of encodings(value))
        writeSync(secretsFile, `${kind}\t${outputLength}\t${JSON.stringify(text)}\n`)
    },
  }
}

function encodings(value: string | Uint8Array): string[] {
  if (typeof value === 'string') return [value]
  const bytes = Buffer.from(value)
  return [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
}

/** The script and the command without its values, such as `keyway apps secret`; `node` if there is no script. */
function programName([, ...args]: readonly string[]): string {
  const scriptIndex = args.findIndex(arg => /\.[cm]?[jt]s$/.test(arg))
  if (scriptIndex < 0) return 'node'
  const [script = '', ...words] = args.slice(scriptIndex)
  const file = script.endsWith('.mjs')
    ? basename(script)
    : basename(script) === 'keyway.js'
      ? 'keyway'
      : relative(join(import.meta.dirname, '../../../..'), script)
  return [file, ...words.filter(word => /^[a-z][a-z-]*$/.test(word)).slice(0, 2)].join(' ')
}

/** Records a standard stream once Node has created it. Node does so lazily, and recording must not do it earlier. */
function recordStream(recorder: Recorder, name: 'stdout' | 'stderr'): void {
  const { get } = Object.getOwnPropertyDescriptor(process, name)!
  let observedStream: NodeJS.WriteStream | undefined
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get() {
      const stream: NodeJS.WriteStream = get!.call(process)
      if (stream !== observedStream) tee(stream, recorder, name)
      observedStream = stream
      return stream
    },
  })
}

type Write = (chunk: string | Uint8Array, ...rest: unknown[]) => unknown

function tee(stream: { write: unknown }, recorder: Recorder, source: string): void {
  const write = stream.write as Write
  stream.write = function (this: unknown, chunk: string | Uint8Array, ...rest: unknown[]) {
    recorder.output(source, chunk)
    return write.call(this, chunk, ...rest)
  }
}

/** Records the output of this project's child processes, which cannot record their own fatal errors. */
function recordChildren(recorder: Recorder): void {
  subscribe('child_process', message => {
    const { process: child } = message as { process: ChildProcess }
    // The streams exist once spawn has returned, before any output.
    process.nextTick(() => {
      if (!isKeyway(child)) return
      const program = programName(child.spawnargs)
      for (const name of ['stdout', 'stderr'] as const) {
        const stream = child[name]
        if (!stream) continue
        const push = stream.push
        // A listener would make the stream flow before the test reads it.
        stream.push = function (chunk, encoding) {
          if (chunk) recorder.output(`${name} of ${program}`, chunk)
          return push.call(this, chunk, encoding)
        }
      }
    })
  })
}

/** Whether the child runs Node or `keyway`; others are clients (curl, browsers), which receive secrets. */
function isKeyway({ spawnfile = '', spawnargs = [] }: ChildProcess): boolean {
  return spawnfile === process.execPath || spawnargs.some(arg => arg.includes('keyway.js'))
}

const HTTP_STATUS = /^HTTP\/1\.1 (\d)/
/** An error message of the hub, with the WebSocket frame header that is written in the same chunk. */
const HUB_ERROR = /^\x81.{1,9}?\{"type":"error"/s
const CLOSE_FRAME = 0x88
/** Sockets whose last response was an error; its body may follow in later writes. */
const socketsInError = new WeakSet<Socket>()

/** Records error responses at the socket, since some are written without a `ServerResponse`. */
function recordErrorAnswers(recorder: Recorder): void {
  for (const name of ['write', 'end'] as const) {
    const original = Socket.prototype[name] as Write
    Socket.prototype[name] = function (
      this: Socket & { server?: unknown },
      chunk?: unknown,
      ...rest: unknown[]
    ) {
      // Only sockets of servers have `server`.
      if (this.server && (typeof chunk === 'string' || chunk instanceof Uint8Array))
        recordIfError(this, chunk)
      return original.call(this, chunk as string, ...rest)
    } as never
  }

  function recordIfError(socket: Socket, chunk: string | Uint8Array): void {
    const start =
      typeof chunk === 'string' ? chunk.slice(0, 32) : Buffer.from(chunk.subarray(0, 32)).toString('latin1')
    const status = HTTP_STATUS.exec(start)?.[1]
    if (status) {
      if (status >= '4') socketsInError.add(socket)
      else socketsInError.delete(socket)
    }
    if (socketsInError.has(socket)) recorder.output('error answer', chunk)
    else if (HUB_ERROR.test(start) || start.charCodeAt(0) === CLOSE_FRAME) recorder.output('hub error', chunk)
  }
}
