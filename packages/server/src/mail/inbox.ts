import { type Clock, DAY } from '../clock.ts'
import type { Inbox, InboxItem, Mail, Mailer } from '../outbox/outbox.ts'
import type { InboxMail } from '../outbox/outbox-store.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { composeSource } from './mime.ts'
import type { Sender } from './sender.ts'

/** How long the local inbox keeps a mail. */
export const INBOX_KEPT_FOR = DAY
/** Maximum number of mails in the local inbox. */
export const INBOX_LENGTH = 200

export interface InboxDeps {
  storage: Storage
  secrets: Secrets
  clock: Clock
}

/** Called once for each mail with a link; `serve` prints the link. */
export type Announce = (mail: LinkMail) => void

interface LinkMail {
  to: EmailAddress
  template: string
  link: string
  code: string | null
}

/** What the link of a mail is for, by the mail's template. */
const LINK_NAMES: Partial<Record<string, string>> = {
  signup: 'Sign-in link',
  login: 'Sign-in link',
  email_change_old: 'Link to confirm the change of address',
  email_change_new: 'Link to confirm the new address',
}

export function printedLink({ to, template, link, code }: LinkMail): string {
  return `${LINK_NAMES[template] ?? 'Link'} for ${to}: ${link}${code ? `  (code ${code})` : ''}`
}

/** For development: stores mail in the service's database, sealed, instead of sending it. */
export function createInboxMailer(deps: InboxDeps & { from: Sender; announce?: Announce }): Mailer {
  const { storage, secrets, clock, from, announce } = deps
  return {
    async deliver(mail) {
      const id = mail.messageId
      const existingMail = await storage.store.inbox.find(id)
      if (existingMail) return
      const now = clock.now()
      const storedMail: StoredMail = { ...mail, source: await composeSource(mail, from) }
      await storage.store.inbox.prune(now - INBOX_KEPT_FOR)
      await storage.store.inbox.insert(
        {
          id,
          recipient: mail.to,
          sealedMail: secrets.seal('inbox', Buffer.from(JSON.stringify(storedMail)), id),
          createdAt: now,
        },
        INBOX_LENGTH,
      )
      const { to, template, link, code } = mail
      if (link) announce?.({ to, template, link, code })
    },
    async check() {},
    close() {},
  }
}

/** A mail with its MIME message, which is composed once, so that its Date and boundary do not change. */
type StoredMail = Mail & { source: string }

export function createInbox({ storage, secrets, clock }: InboxDeps): Inbox {
  const isRetained = (mail: InboxMail) => mail.createdAt > clock.now() - INBOX_KEPT_FOR
  return {
    async list(recipient) {
      const mails = await storage.store.inbox.list(recipient, INBOX_LENGTH)
      return mails.filter(isRetained).flatMap(mail => {
        const openedMail = openMail(secrets, mail)
        return openedMail ? [toItem(mail, openedMail)] : []
      })
    },
    async source(id) {
      const mail = await storage.store.inbox.find(id)
      return (mail && isRetained(mail) && openMail(secrets, mail)?.source) || null
    },
  }
}

function toItem({ id, createdAt }: InboxMail, mail: StoredMail): InboxItem {
  const { to, subject, template, link, code, text, html } = mail
  return { id, to, subject, template, link, code, text, html, createdAt }
}

/** Null for a mail that no configured secret decrypts; the inbox shows the others. */
function openMail(secrets: Secrets, { id, sealedMail }: InboxMail): StoredMail | null {
  try {
    return JSON.parse(secrets.open('inbox', sealedMail, id).toString())
  } catch (error) {
    if (error instanceof SealError) return null
    throw error
  }
}
