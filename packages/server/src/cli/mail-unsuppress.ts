import { BY_COMMAND_LINE } from '../audit/audit.ts'
import { OperatorError } from '../operator-error.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'mail unsuppress',
    args: ['ADDRESS'],
    summary: 'Allow mail again to an address that bounced or complained.',
    help: `After a bounce or a complaint no mail is sent to an address for 7 days; "users show" has the end. This command ends
it now. Find the cause first: if the mailbox still does not exist, the next mail bounces again, which harms your
reputation with mail providers. Mail that was suppressed meanwhile is not sent later. Example:
  keyway mail unsuppress ada@example.com`,
    async run(context) {
      const email = parseEmailAddress(context.args[0]!)
      if (!email) throw new OperatorError('ADDRESS must be one e-mail address, for example you@example.com.')
      const { suppressions } = await context.services()
      const lifted = await suppressions.lift(email, BY_COMMAND_LINE)
      context.print(
        { email, lifted },
        lifted ? `Mail to ${email} is allowed again.` : `${email} was not suppressed.`,
      )
      return 0
    },
  },
]
