import type { Command } from './command.ts'

export const commands: Command[] = [
  {
    name: 'serve',
    args: [],
    summary: 'Run the service (what "keyway" alone does).',
    help: `Checks the settings, prepares the database, listens, and prints where to go next. SIGTERM or Ctrl-C
drains it: agents are told, queued mail stays queued, and it exits with 0 within ten seconds.`,
    async run(context) {
      const { serve } = await import('../main.ts')
      return serve(context.config())
    },
  },
]
