import { OperatorError } from '../operator-error.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'mail unsuppress',
    args: ['ADDRESS'],
    summary: 'Send mail to an address again that bounced or complained.',
    help: `After a bounce or a complaint nothing is sent to an address for 7 days; "users show" says until when. This lifts
it at once. Ask first what was wrong: if the mailbox is still not there, the next mail bounces again, and providers
count that against you. Mail that was not sent meanwhile stays unsent. Example:
  keyway mail unsuppress ada@example.com`,
    async run(context) {
      const email = parseEmailAddress(context.args[0]!)
      if (!email) throw new OperatorError('ADDRESS must be one e-mail address, for example you@example.com.')
      const { suppressions } = await context.services()
      const lifted = await suppressions.lift(email)
      context.print(
        { email, lifted },
        lifted ? `Mail to ${email} is sent again.` : `${email} was not suppressed.`,
      )
      return 0
    },
  },
]
