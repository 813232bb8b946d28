import { loadCommand } from '../../src/cli/commands.ts'
import type { Services } from '../../src/services.ts'

export interface CommandAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: an answer is whatever the test says it must be
  data: any
  text: string
}

/** Runs one command on open services, as the command line does. */
export async function runCommand(
  services: Services,
  name: string,
  ...args: string[]
): Promise<CommandAnswer> {
  const command = await loadCommand(name)
  const answer: CommandAnswer = { status: 0, data: null, text: '' }
  const status = await command.run({
    args,
    options: {},
    repeated: {},
    config: () => services.config,
    settings: () => services.config,
    services: async () => services,
    printLines(text) {
      answer.text += text
    },
    print(data, text) {
      Object.assign(answer, { data: JSON.parse(JSON.stringify(data)), text })
    },
  })
  return { ...answer, status: status ?? 0 }
}
