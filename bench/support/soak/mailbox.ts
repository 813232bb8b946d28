import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

const MAIL_TIMEOUT_MS = 30_000

export interface Mailbox {
  settings: Record<string, string>
  /** The sign-in token of the next mail to this address. */
  token(address: string): Promise<string>
  close(): void
}

/** A mail server that accepts every mail, and keeps only sign-in tokens that are awaited. */
export async function startMailbox(): Promise<Mailbox> {
  const awaitedAddresses = new Map<string, (token: string) => void>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, session, done) {
      let rawMail = ''
      stream.on('data', chunk => (rawMail += chunk))
      stream.on('end', () => {
        const text = rawMail.replaceAll('=\r\n', '').replaceAll('=3D', '=')
        const token = /[?&]token=([\w-]{43})/.exec(text)?.[1]
        const address = session.envelope.rcptTo[0]?.address ?? ''
        if (token) awaitedAddresses.get(address)?.(token)
        done()
      })
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    settings: {
      KEYWAY_MAIL_URL: `smtp://127.0.0.1:${port}`,
      KEYWAY_SUPPORT_EMAIL: 'support@example.com',
      KEYWAY_MAIL_FROM: 'Keyway <no-reply@example.com>',
    },
    async token(address) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const timer = setTimeout(() => reject(new Error('no mail arrived')), MAIL_TIMEOUT_MS)
      awaitedAddresses.set(address, resolve)
      return promise.finally(() => {
        clearTimeout(timer)
        awaitedAddresses.delete(address)
      })
    },
    close: () => server.close(),
  }
}
