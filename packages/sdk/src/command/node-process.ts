import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

/** Exit statuses, from 64 on those of sysexits.h. systemd must not restart after 77: `RestartPreventExitStatus=77`. */
export const EXIT = { failed: 1, usage: 64, stoppedForGood: 77, wrongSettings: 78 } as const

/** `$XDG_CONFIG_HOME/keyway`, by default `~/.config/keyway`; `%APPDATA%\keyway` on Windows. */
export function configFolder(env: NodeJS.ProcessEnv = process.env): string {
  // The XDG specification: a relative path is invalid and is ignored.
  if (env.XDG_CONFIG_HOME?.startsWith('/')) return join(env.XDG_CONFIG_HOME, 'keyway')
  if (process.platform === 'win32' && env.APPDATA) return join(env.APPDATA, 'keyway')
  return join(env.HOME || homedir(), '.config', 'keyway')
}

const MAX_KEY_NAME_LENGTH = 100

/** The default name of this machine's key. */
export function machineName(): string {
  return keyName(hostname()) || 'a machine'
}

/** Turns text into a valid key name: without control characters, and not too long. Empty if nothing else remains. */
export function keyName(text: string): string {
  const cleanText = text.replace(/\p{Cc}/gu, ' ').trim()
  return [...cleanText].slice(0, MAX_KEY_NAME_LENGTH).join('')
}
