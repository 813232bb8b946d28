import { SMTPServer } from 'smtp-server'
import { until } from './patience.ts'

export interface Mailbox {
  /** The value of KEYWAY_MAIL_URL. */
  url: string
  /** Waits for a mail to this address, and returns the token of the link in the newest. */
  readToken(email: string): Promise<string>
  close(): Promise<void>
}

/** An SMTP server on loopback that stores the mails that it accepts. */
export async function createMailbox(): Promise<Mailbox> {
  const mails: { to: string[]; raw: string }[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(recipient => recipient.address)
        mails.push({ to, raw: Buffer.concat(chunks).toString() })
        done()
      })
    },
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as { port: number }
  return {
    url: `smtp://127.0.0.1:${port}`,
    readToken(email) {
      return until(`a mail for ${email}`, () => {
        const mail = mails.findLast(each => each.to.includes(email))
        return mail && /[?&]token=([\w-]{43})/.exec(decodeQuotedPrintable(mail.raw))?.[1]
      })
    },
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}

/** Decodes quoted-printable, as far as links need it (RFC 2045 section 6.7). */
function decodeQuotedPrintable(raw: string): string {
  return raw
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
}
