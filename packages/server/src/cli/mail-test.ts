import { newId } from '../ids.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import { type Command, CommandFailed } from './command.ts'
import { createMail } from './mail.ts'

export const commands: Command[] = [
  {
    name: 'mail test',
    args: ['ADDRESS'],
    summary: 'Send a test mail by the configured way.',
    help: `Checks that the mail server answers, then sends one mail and says whether it was taken. Example:
  keyway mail test you@example.com`,
    async run(context) {
      const email = parseEmailAddress(context.args[0]!)
      if (!email) throw new CommandFailed('ADDRESS must be one e-mail address, for example you@example.com.')
      const services = await context.services()
      const { storage, clock, outbox } = services
      const { mailer, dispatcher } = await createMail(services)
      await mailer.check().catch(refused)
      const id = newId(clock.now())
      await storage.transaction(tx =>
        outbox.enqueue(tx, {
          id,
          recipient: email,
          userId: null,
          content: { kind: 'test' },
          now: clock.now(),
        }),
      )
      await dispatcher.drain()
      const sent = (await storage.store.outbox.recentFor(email, 20)).find(mail => mail.id === id)
      if (sent?.state !== 'sent')
        throw new CommandFailed(
          `The mail was not taken yet: ${sent?.lastError ?? 'a running server may be sending it; see keyway users show'}.`,
        )
      context.print({ id, state: sent.state }, `A test mail for ${email} was taken.`)
      return 0
    },
  },
]

function refused(error: Error): never {
  throw new CommandFailed(
    `The mail server did not answer as it should: ${error.message}. See KEYWAY_MAIL_URL.`,
  )
}
