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
/** Longer responses of the mail server are cut off, which bounds memory. */
const MAX_RESPONSE_BYTES = 64 * 1024

export interface SmtpDeps {
  from: Sender
  /** CA certificates besides the system's, for a private mail server or a test. */
  ca?: string
}

/** Sends mail through a mail server by SMTP (RFC 5321, STARTTLS by RFC 3207). Certificates are verified. */
export function createSmtpMailer(settings: SmtpSettings, { from, ca }: SmtpDeps): Mailer {
  const transport = createTransport({
    pool: true,
    host: settings.host,
    port: settings.port,
    secure: settings.secure,
    requireTLS: settings.requireTls && !settings.secure,
    // If TLS is optional (loopback, `?tls=off`), STARTTLS is not used: the server's certificate may be self-signed.
    ignoreTLS: !settings.requireTls && !settings.secure,
    tls: { minVersion: 'TLSv1.2', rejectUnauthorized: true, ...(ca ? { ca } : {}) },
    ...(settings.user === null ? {} : { auth: { user: settings.user, pass: settings.password ?? '' } }),
    // EHLO names the sender's domain, not this machine.
    name: domainOf(from),
    // A connection for each concurrent delivery, so that a server that hangs over one mail does not delay the others.
    maxConnections: CONCURRENT_DELIVERIES,
    // The outbox retries with its own back-off; a retry here could send a mail twice.
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
      // Nodemailer would parse several recipients from a string with commas.
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

/** Statuses that do not refuse the mail itself: 530 to 538 refuse this service's login, 503 the order of commands. */
const RETRYABLE_REFUSALS = [503, 530, 534, 535, 538]

/**
 * Only a 5xx to MAIL, RCPT or DATA is not retryable. After a refused greeting, login or TLS handshake the mail stays
 * queued until the operator has fixed the settings.
 */
function classify(error: unknown): unknown {
  const { code, responseCode, response } = error as {
    code?: string
    responseCode?: number
    response?: string
  }
  const isAboutTheMail = code === 'EENVELOPE' || code === 'EMESSAGE'
  if (!isAboutTheMail || !responseCode || responseCode < 500 || RETRYABLE_REFUSALS.includes(responseCode)) {
    return error
  }
  return new MailRejected(response ?? `SMTP ${responseCode}`, { cause: error })
}
