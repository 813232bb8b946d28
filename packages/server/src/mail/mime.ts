import type { SendMailOptions } from 'nodemailer'
import type { Mail } from '../outbox/outbox.ts'
import { AUTOMATIC_HEADERS } from './auto-submitted.ts'
import { domainOf, type Sender } from './sender.ts'

/** A mail in Nodemailer's format. Header and envelope have the same single recipient. */
export function toMessage(mail: Mail, from: Sender): SendMailOptions {
  return {
    envelope: { from: from.address, to: [mail.to] },
    from: { name: from.name, address: from.address },
    to: { name: '', address: mail.to },
    messageId: `<${mail.messageId}@${domainOf(from)}>`,
    subject: mail.subject,
    text: mail.text,
    html: mail.html,
    headers: AUTOMATIC_HEADERS,
    xMailer: false,
    textEncoding: 'quoted-printable',
  }
}

/** The message as sent by SMTP (RFC 5322, RFC 2045): headers and both parts, in ASCII lines that end in CRLF. */
export async function composeSource(mail: Mail, from: Sender): Promise<string> {
  const { createTransport } = await import('nodemailer') // on demand, for a fast start
  const composer = createTransport({
    streamTransport: true,
    buffer: true,
    newline: 'windows',
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const { message } = await composer.sendMail(toMessage(mail, from))
  return message.toString()
}
