import { type Config, loadConfigOfProcess } from '../config.ts'

/** What stands around a command line: the settings that it finds, and where its words go. */
export interface Terminal {
  /** @throws ConfigError */
  loadConfig(): Config
  /** Standard output, for the answer alone. */
  print(text: string): void
  /** Standard error, for what went wrong. */
  complain(text: string): void
}

export const processTerminal: Terminal = {
  loadConfig: loadConfigOfProcess,
  print: text => console.log(text),
  complain: text => console.error(text),
}
