import { createTransport } from 'nodemailer'
import { SECOND } from '../clock.ts'
import type { Config } from '../config.ts'
import { CONCURRENT_DELIVERIES } from '../outbox/dispatcher.ts'
import { type Mailer, MailRejected } from '../outbox/outbox.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import { toMessage } from './mime.ts'
import { domainOf, type Sender } from './sender.ts'

export type SmtpSettings = Extract<Config['mail'], { kind: 'smtp' }>

const CONNECTION_TIMEOUT = 10 * SECOND
const GREETING_TIMEOUT = 10 * SECOND
const SOCKET_TIMEOUT = 20 * SECOND
/** No honest answer is longer; a hostile one costs no more memory than this. */
const MAX_RESPONSE_BYTES = 64 * 1024

export interface SmtpDeps {
  from: Sender
  /** Certificates to trust besides the system's; a private relay, a test. */
  ca?: string
}

/** Hands mail to a relay by SMTP (RFC 5321, STARTTLS by RFC 3207). Certificates are verified. */
export function createSmtpMailer(settings: SmtpSettings, { from, ca }: SmtpDeps): Mailer {
  const transport = createTransport({
    pool: true,
    host: settings.host,
    port: settings.port,
    secure: settings.secure,
    requireTLS: settings.requireTls && !settings.secure,
    // Where TLS is not demanded (loopback, `?tls=off`), a relay's self-made certificate shall not fail the mail.
    ignoreTLS: !settings.requireTls && !settings.secure,
    tls: { minVersion: 'TLSv1.2', rejectUnauthorized: true, ...(ca ? { ca } : {}) },
    ...(settings.user === null ? {} : { auth: { user: settings.user, pass: settings.password ?? '' } }),
    // The greeting names the sender's domain, not this machine.
    name: domainOf(from),
    // A relay that hangs over one mail leaves the other deliveries a connection each.
    maxConnections: CONCURRENT_DELIVERIES,
    // The outbox repeats, with its own back-off; a repetition here would be a mail twice.
    maxRequeues: 0,
    idleTimeout: 30 * SECOND,
    connectionTimeout: CONNECTION_TIMEOUT,
    greetingTimeout: GREETING_TIMEOUT,
    socketTimeout: SOCKET_TIMEOUT,
    maxResponseSize: MAX_RESPONSE_BYTES,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  // Errors of idle connections come here too; without a listener they would end the process.
  transport.on('error', () => {})

  return {
    async deliver(mail, signal) {
      // The library would read a list of recipients out of a text that holds one.
      if (parseEmailAddress(mail.to) !== mail.to)
        throw new MailRejected('the recipient is not one plain address')
      try {
        await transport.sendMail({ ...toMessage(mail, from), maxRecipients: 1, signal })
      } catch (error) {
        throw classify(error)
      }
    },
    async check() {
      await transport.verify()
    },
    close() {
      transport.close({ force: true })
    },
  }
}

/** 530 and 535 speak of this service's credentials, 503 of the session: neither refuses the mail itself. */
const NOT_ABOUT_THE_MAIL = [503, 530, 534, 535, 538]

/**
 * Only a 5xx to the sender, the recipient or the data is for good. A refused greeting, log-in or TLS handshake
 * is the operator's to mend, and the mail waits for it.
 */
function classify(error: unknown): unknown {
  const { code, responseCode, response } = error as {
    code?: string
    responseCode?: number
    response?: string
  }
  const aboutTheMail = code === 'EENVELOPE' || code === 'EMESSAGE'
  if (!aboutTheMail || !responseCode || responseCode < 500 || NOT_ABOUT_THE_MAIL.includes(responseCode)) {
    return error
  }
  return new MailRejected(response ?? `SMTP ${responseCode}`, { cause: error })
}
