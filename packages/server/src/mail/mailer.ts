import type { Config } from '../config.ts'
import type { Mailer } from '../outbox/outbox.ts'
import { createPostmarkMailer, createResendMailer } from './http-api.ts'
import { type Announce, createInboxMailer, type InboxDeps } from './inbox.ts'
import type { Sender } from './sender.ts'

export interface MailerDeps extends InboxDeps {
  from: Sender
  /** Called for each mail with a link if `KEYWAY_MAIL_URL` is `inbox:`. */
  announce?: Announce
}

/** The mailer that `KEYWAY_MAIL_URL` names. The SMTP library is loaded only for SMTP. */
export async function createMailer(settings: Config['mail'], deps: MailerDeps): Promise<Mailer> {
  switch (settings.kind) {
    case 'inbox':
      return createInboxMailer(deps)
    case 'smtp': {
      const { createSmtpMailer } = await import('./smtp.ts')
      return createSmtpMailer(settings, deps)
    }
    case 'resend':
      return createResendMailer(settings.key, deps)
    case 'postmark':
      return createPostmarkMailer(settings.token, deps)
  }
}
