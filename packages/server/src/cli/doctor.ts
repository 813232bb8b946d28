import { configWarnings } from '../config.ts'
import { type Command, EXIT_FAILED } from './command.ts'
import { createMail } from './mail.ts'

interface Finding {
  check: string
  ok: boolean
  detail: string
}

export const commands: Command[] = [
  {
    name: 'doctor',
    args: [],
    summary: 'Look at everything that the service needs, and say what is wrong.',
    help: 'Settings, database, clock, signing keys, mail. Changes nothing. Exits with 1 when something needs attention.',
    async run(context) {
      const config = context.config()
      const services = await context.services()
      const { storage, clock, signingKeys } = services
      const { mailer } = createMail(services)
      const findings = [
        ...configWarnings(config).map(detail => ({ check: 'settings', ok: false, detail })),
        await look('database', async () => {
          const started = performance.now()
          await storage.readClock()
          return `${config.database.engine} answers in ${Math.ceil(performance.now() - started)} ms`
        }),
        await look('clock', async () => {
          const skew = Math.abs((await storage.readClock()) - clock.now())
          if (skew > 1000) throw new Error(`this machine and the database differ by ${skew} ms`)
          return 'agrees with the database'
        }),
        await look('signing keys', async () => {
          await signingKeys.load()
          return `${signingKeys.jwks().keys.length} published`
        }),
        await look('mail', async () => {
          await mailer.check()
          const { queued } = await storage.store.outbox.depth(clock.now())
          return `${config.mail.kind} answers, ${queued} queued`
        }),
      ]
      const lines = findings.map(each => `${each.ok ? 'ok  ' : 'LOOK'}  ${each.check}: ${each.detail}`)
      context.print({ findings }, lines.join('\n'))
      return findings.every(each => each.ok) ? 0 : EXIT_FAILED
    },
  },
]

async function look(check: string, ask: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await ask() }
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message }
  }
}
