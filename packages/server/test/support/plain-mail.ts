import type { MailWriter } from '../../src/outbox/outbox.ts'

/** Writes mails without templates: for tests of who receives which mail. */
export const plainMail: MailWriter = ({ id, recipient, content }) => ({
  messageId: id,
  to: recipient,
  subject: content.kind,
  text: '',
  html: '',
  template: content.kind,
  link: content.kind === 'sign_in' ? content.link : null,
  code: null,
})
