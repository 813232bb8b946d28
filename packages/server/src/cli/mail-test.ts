import { setTimeout as wait } from 'node:timers/promises'
import { newId } from '../ids.ts'
import { OperatorError } from '../operator-error.ts'
import { DELIVERY_DEADLINE } from '../outbox/delivery.ts'
import type { OutboxMessage } from '../outbox/message.ts'
import type { OutboxStore } from '../outbox/outbox-store.ts'
import { createMail } from '../services.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'
import type { Command } from './command.ts'

const POLL_INTERVAL_MS = 100
/** Number of the address's latest mails that are searched for the test mail. */
const SEARCHED_MAILS = 20

export const commands: Command[] = [
  {
    name: 'mail test',
    args: ['ADDRESS'],
    summary: 'Send a test mail.',
    help: `Checks that the configured mail server answers, sends one mail, and reports whether it was accepted. Example:
  keyway mail test you@example.com`,
    async run(context) {
      const email = parseEmailAddress(context.args[0]!)
      if (!email) throw new OperatorError('ADDRESS must be one e-mail address, for example you@example.com.')
      const services = await context.services()
      const { storage, clock, outbox } = services
      const { mailer, dispatcher } = await createMail(services)
      await mailer.check().catch(throwCheckError)
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
      const mail = await awaitAttempt(storage.store.outbox, email, id)
      if (mail?.state !== 'sent')
        throw new OperatorError(
          `The mail was not accepted: ${mail?.lastError ?? 'a running server has leased it and not finished; see keyway users show'}.`,
        )
      context.print({ id, state: mail.state }, `A test mail to ${email} was accepted.`)
      return 0
    },
  },
]

/**
 * Waits for the first delivery attempt, at most for the time limit of one: a running server may have leased the mail
 * before this command. Returns the mail in its last state; undefined if it is not among the address's latest mails.
 */
async function awaitAttempt(
  outbox: OutboxStore,
  recipient: EmailAddress,
  id: string,
): Promise<OutboxMessage | undefined> {
  const deadline = performance.now() + DELIVERY_DEADLINE + POLL_INTERVAL_MS
  for (;;) {
    const mail = (await outbox.recentFor(recipient, SEARCHED_MAILS)).find(each => each.id === id)
    const isUnderWay = mail?.state === 'queued' && mail.lastError === null
    if (!isUnderWay || performance.now() > deadline) return mail
    await wait(POLL_INTERVAL_MS)
  }
}

function throwCheckError(error: Error): never {
  throw new OperatorError(`The check of the mail server failed: ${error.message}. See KEYWAY_MAIL_URL.`)
}
