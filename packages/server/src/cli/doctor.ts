import { examineAll } from '../operations/doctor.ts'
import { EXIT_FAILED } from '../operator-error.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'doctor',
    args: [],
    summary: 'Check everything that the service needs, and report problems.',
    help: `Checks settings, data directory, database, clock, secrets, signing keys, mail, and the public URL as clients see it,
with proxy and TLS; run it on the machine of a running service. Changes nothing and sends no mail ("mail test ADDRESS"
does). Lines with LOOK are problems and say what to do; with any of them the exit status is 1.`,
    async run(context) {
      const findings = await examineAll(await context.services())
      const lines = findings.map(each => `${each.ok ? 'ok  ' : 'LOOK'}  ${each.check}: ${each.detail}`)
      context.print({ findings }, lines.join('\n'))
      return findings.every(each => each.ok) ? 0 : EXIT_FAILED
    },
  },
]
