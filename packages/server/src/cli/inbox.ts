import { toRfc3339 } from '../clock.ts'
import { createInbox } from '../mail/inbox.ts'
import { OperatorError } from '../operator-error.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'inbox',
    args: [],
    options: { to: { value: 'ADDRESS', meaning: 'only mail for this address' } },
    summary: 'Show the mail in the local inbox.',
    help: 'Only with KEYWAY_MAIL_URL=inbox: (the default). Newest first, with the link and the code of each mail.',
    async run(context) {
      if (context.config().mail.kind !== 'inbox')
        throw new OperatorError('There is no local inbox: KEYWAY_MAIL_URL sends mail elsewhere.')
      const recipient = recipientOf(context.options.to)
      const mails = (await createInbox(await context.services()).list(recipient)).map(
        ({ createdAt, ...mail }) => ({ ...mail, created_at: toRfc3339(createdAt) }),
      )
      const lines = mails.flatMap(mail => [
        `${mail.created_at}  ${mail.to}  ${mail.subject}`,
        ...(mail.link ? [`  ${mail.link}`] : []),
        ...(mail.code ? [`  code ${mail.code}`] : []),
      ])
      context.print({ data: mails }, lines.join('\n') || 'The inbox is empty.')
      return 0
    },
  },
]

function recipientOf(to: string | boolean | undefined) {
  if (to === undefined) return null
  const recipient = parseEmailAddress(String(to))
  if (!recipient)
    throw new OperatorError('--to must be one e-mail address, for example --to you@example.com.')
  return recipient
}
