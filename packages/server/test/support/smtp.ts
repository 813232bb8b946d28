import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { inTime } from './patience.ts'

/** How the server handles a mail to a recipient. */
export type SmtpBehaviour =
  | 'accept'
  /** Never answers RCPT. */
  | 'hang'
  /** Receives the data and then drops the connection without an answer. */
  | 'die-after-data'
  /** Answers RCPT with this status. */
  | number

export interface ReceivedMail {
  from: string
  recipients: string[]
  raw: string
  /** Lower-case names; unfolded values. */
  headers: Map<string, string[]>
  /** Decoded, like `html`; empty if the mail has no such part. */
  text: string
  html: string
  encrypted: boolean
  user: string | null
}

export interface TestSmtpServer {
  port: number
  /** The certificate to trust, PEM. */
  certificate: string
  /** Mails that were accepted with 250, or received completely before the connection was dropped. */
  mails: ReceivedMail[]
  /** Recipients of all RCPT commands in order, including refused ones. */
  recipients: string[]
  /** Everything that clients sent, if `startTls` is false, so that nothing is encrypted; otherwise empty. */
  wire: string
  connections: number
  mostConnections: number
  /** Resolves once `count` mails were received. */
  received(count: number): Promise<void>
  /** Resolves once `count` RCPT commands were seen. */
  rcptCommands(count: number): Promise<void>
  /** Sets the behaviour by recipient and attempt (from 1). */
  behave(decide: (recipient: string, attempt: number) => SmtpBehaviour): void
  close(): Promise<void>
}

export interface TestSmtpOptions {
  startTls?: boolean
  certificateFor?: string
  auth?: { user: string; password: string }
}

/** Starts an SMTP server, closed after the test. */
export async function startSmtpServer(
  t: TestContext,
  options: TestSmtpOptions = {},
): Promise<TestSmtpServer> {
  const { key, certificate } = selfSignedCertificate(options.certificateFor ?? 'localhost')
  const state = createRecorder(certificate)
  const server = new SMTPServer({
    key,
    cert: certificate,
    disabledCommands: [
      ...(options.startTls === false ? ['STARTTLS'] : []),
      ...(options.auth ? [] : ['AUTH']),
    ],
    authOptional: !options.auth,
    closeTimeout: 50,
    disableReverseLookup: true,
    ...handlers(state, options),
  })
  // Clients of some tests disconnect during a session.
  server.on('error', () => {})
  server.server.on('connection', (socket: Socket) => {
    state.sockets.set(socket.remotePort!, socket)
    socket.on('close', () => state.sockets.delete(socket.remotePort!))
    if (options.startTls !== false) return
    socket.on('data', chunk => {
      state.wire += chunk
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  state.port = (server.server.address() as AddressInfo).port
  state.close = () => new Promise(resolve => server.close(() => resolve()))
  t.after(() => state.close())
  return state
}

function createRecorder(certificate: string) {
  const waitingChecks = new Set<() => void>()
  const waitUntil = (done: () => boolean) =>
    new Promise<void>(resolve => {
      const check = () => {
        if (!done()) return
        waitingChecks.delete(check)
        resolve()
      }
      waitingChecks.add(check)
      check()
    })
  const state = {
    port: 0,
    certificate,
    mails: [] as ReceivedMail[],
    recipients: [] as string[],
    wire: '',
    /** Sockets by the client's port. */
    sockets: new Map<number, Socket>(),
    connections: 0,
    mostConnections: 0,
    decide: (() => 'accept') as (recipient: string, attempt: number) => SmtpBehaviour,
    changed: () => {
      for (const check of [...waitingChecks]) check()
    },
    received: (count: number): Promise<void> =>
      inTime(
        `mail number ${count}`,
        waitUntil(() => state.mails.length >= count),
      ),
    rcptCommands: (count: number): Promise<void> =>
      inTime(
        `recipient number ${count}`,
        waitUntil(() => state.recipients.length >= count),
      ),
    behave(decide: (recipient: string, attempt: number) => SmtpBehaviour) {
      state.decide = decide
    },
    close: async () => {},
  }
  return state
}

type Recorder = ReturnType<typeof createRecorder>

function handlers(state: Recorder, { auth }: TestSmtpOptions): SMTPServerOptions {
  return {
    onConnect(_session, callback) {
      state.connections++
      state.mostConnections = Math.max(state.mostConnections, state.connections)
      callback()
    },
    onClose() {
      state.connections--
    },
    onAuth({ username, password }, _session, callback) {
      if (username === auth?.user && password === auth?.password) callback(null, { user: username })
      else callback(Object.assign(new Error('wrong credentials'), { responseCode: 535 }))
    },
    onRcptTo({ address }, _session, callback) {
      state.recipients.push(address)
      const attempt = state.recipients.filter(recipient => recipient === address).length
      const behaviour = state.decide(address, attempt)
      if (typeof behaviour === 'number') {
        callback(Object.assign(new Error(`refused <${address}>`), { responseCode: behaviour }))
      } else if (behaviour !== 'hang') callback()
      state.changed()
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        const recipients = session.envelope.rcptTo.map(recipient => recipient.address)
        const from = session.envelope.mailFrom ? session.envelope.mailFrom.address : ''
        const user = session.user ?? null
        const raw = Buffer.concat(chunks).toString()
        state.mails.push({ from, recipients, encrypted: session.secure, user, ...parseMail(raw) })
        const attempt = state.recipients.filter(recipient => recipient === recipients[0]).length
        if (state.decide(recipients[0]!, attempt) === 'die-after-data') {
          // No answer is sent, so the client cannot know whether the mail was accepted.
          state.sockets.get(session.remotePort)?.destroy()
        } else callback()
        state.changed()
      })
    },
  }
}

/** A TCP server whose responses `talk` writes, for tests with invalid SMTP. */
export async function startRawServer(t: TestContext, talk: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server: Server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    talk(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

export function selfSignedCertificate(name: string): { key: string; certificate: string } {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-certificate-'))
  try {
    const files = ['-keyout', join(folder, 'key'), '-out', join(folder, 'certificate')]
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
    const certificateOptions = [
      '-x509',
      '-nodes',
      '-days',
      '2',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
    ]
    execFileSync('openssl', ['req', ...certificateOptions, ...files, ...subject], { stdio: 'ignore' })
    return {
      key: readFileSync(join(folder, 'key'), 'utf8'),
      certificate: readFileSync(join(folder, 'certificate'), 'utf8'),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Parses as much of RFC 5322 and 2045 as the mails of this service need. */
export function parseMail(raw: string): Pick<ReceivedMail, 'raw' | 'headers' | 'text' | 'html'> {
  const { headers, body } = splitPart(raw)
  const boundary = /boundary="?([^";]+)/.exec(headers.get('content-type')?.[0] ?? '')?.[1]
  const parts = boundary ? body.split(`--${boundary}`).slice(1, -1).map(splitPart) : [{ headers, body }]
  const read = (type: string) => {
    const part = parts.find(candidate => candidate.headers.get('content-type')?.[0]?.startsWith(type))
    return part ? decodeBody(part.body, part.headers.get('content-transfer-encoding')?.[0]) : ''
  }
  return { raw, headers, text: read('text/plain'), html: read('text/html') }
}

function splitPart(raw: string): { headers: Map<string, string[]>; body: string } {
  const text = raw.replace(/^\r\n/, '')
  const end = text.indexOf('\r\n\r\n')
  const headers = new Map<string, string[]>()
  for (const line of text
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()])
  }
  return { headers, body: text.slice(end + 4) }
}

function decodeBody(body: string, encoding = '7bit'): string {
  const text = body.replace(/\r\n/g, '\n')
  if (encoding.toLowerCase() === 'base64') return Buffer.from(body, 'base64').toString()
  if (encoding.toLowerCase() !== 'quoted-printable') return text
  const bytes = text
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
