import { configWarnings } from '../config.ts'
import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'check-config',
    args: [],
    summary: 'Check the settings and change nothing.',
    help: 'Reads the environment as "serve" would, lists every mistake with an example, and exits with 0 or 78.',
    async run(context) {
      const config = context.settings()
      const warnings = configWarnings(config)
      const facts = {
        public_url: config.publicUrl,
        listening: `${config.host}:${config.port}`,
        database: config.database.engine,
        events: config.events.kind,
        mail: config.mail.kind,
      }
      const lines = Object.entries(facts).map(([name, value]) => `  ${name.padEnd(11)} ${value}`)
      const text = ['The settings are valid.', ...lines, ...warnings.map(warning => `Warning: ${warning}`)]
      context.print({ ok: true, ...facts, warnings }, text.join('\n'))
      return 0
    },
  },
]
