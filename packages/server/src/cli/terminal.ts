import { type Config, loadConfigOfProcess } from '../config.ts'

/** The environment of a command line: its settings and output streams. */
export interface Terminal {
  /** @throws ConfigError */
  loadConfig(): Config
  /** Standard output, for the result alone. */
  print(text: string): void
  /** Standard error, for errors. */
  printError(text: string): void
}

export const processTerminal: Terminal = {
  loadConfig: loadConfigOfProcess,
  print: text => console.log(text),
  printError: text => console.error(text),
}
