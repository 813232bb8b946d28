import { createMailer } from '../mail/mailer.ts'
import { createMailWriter } from '../mail/templates/mail-writer.ts'
import { createDispatcher } from '../outbox/dispatcher.ts'
import type { Services } from '../services.ts'

/** The configured way out, for commands that use it once. */
export async function createMail(services: Services) {
  const { config } = services
  const mailer = await createMailer(config.mail, { ...services, from: config.mailFrom })
  const write = createMailWriter({
    productName: config.mailFrom.name,
    supportEmail: config.supportEmail,
    publicUrl: config.publicUrl,
  })
  return { mailer, dispatcher: createDispatcher({ ...services, mailer, write }) }
}
