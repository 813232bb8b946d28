import { type Config, loadConfigOfProcess } from '../config.ts'

/** The environment of a command line: its settings and output streams. */
export interface Terminal {
  /** @throws ConfigError */
  loadConfig(): Config
  /** Standard output, for the result alone. */
  print(text: string): void
  /** Standard error, for errors. */
  complain(text: string): void
}

export const processTerminal: Terminal = {
  loadConfig: loadConfigOfProcess,
  print: text => console.log(text),
  complain: text => console.error(text),
}
