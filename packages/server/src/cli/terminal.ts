import { type Config, loadConfigOfProcess } from '../config.ts'

/** The settings and output streams of a command. */
export interface Terminal {
  /** @throws ConfigError */
  loadConfig(): Config
  print(text: string): void
  printError(text: string): void
}

export const processTerminal: Terminal = {
  loadConfig: loadConfigOfProcess,
  print: text => console.log(text),
  printError: text => console.error(text),
}
