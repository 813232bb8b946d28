import type { Mail, Mailer } from '../../src/outbox/outbox.ts'
import { plainMail } from '../support/plain-mail.ts'
import type { Random } from '../support/random.ts'
import { currentProcess, type Scheduler } from './scheduler.ts'

/** Delivers mail to the people of the simulation. Sometimes a delivery fails, or the answer to it is lost. */
export class PostOffice {
  readonly mailboxes = new Map<string, Mail[]>()
  readonly #scheduler: Scheduler
  readonly #random: Random
  /** The share of deliveries with a fault. */
  faults = 0

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler
    this.#random = random
  }

  readonly mailer: Mailer = {
    deliver: mail => this.#deliver(mail),
    check: async () => {},
    close() {},
  }

  /** Writes mails without templates, which would take most of the time of a run. */
  readonly write = plainMail

  /** The tokens of the sign-in mails to an address, in the order of their arrival. */
  tokensTo(address: string): string[] {
    const mails = this.mailboxes.get(address) ?? []
    return mails.flatMap(({ link }) => (link ? [new URL(link).searchParams.get('token') ?? ''] : []))
  }

  #deliver(mail: Mail): Promise<void> {
    const owner = currentProcess()
    const fault =
      this.#random.next() < this.faults ? this.#random.pick(['refused', 'unanswered'] as const) : null
    return new Promise((resolve, reject) => {
      this.#scheduler.after(owner, this.#random.between(5, 300), 'mail', () => {
        if (fault !== 'refused') {
          const mailbox = this.mailboxes.get(mail.to) ?? []
          if (!mailbox.some(({ messageId }) => messageId === mail.messageId)) mailbox.push(mail)
          this.mailboxes.set(mail.to, mailbox)
        }
        if (fault) reject(new Error('the mail server did not answer'))
        else resolve()
      })
    })
  }
}
