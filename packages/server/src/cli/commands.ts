import type { Command } from './command.ts'

/** Loads the file of a command on demand, so that `serve` starts fast. */
const loaders: Record<string, () => Promise<{ commands: Command[] }>> = {
  serve: () => import('./serve.ts'),
  migrate: () => import('./migrate.ts'),
  'check-config': () => import('./check-config.ts'),
  'apps list': () => import('./apps.ts'),
  'apps show': () => import('./apps.ts'),
  'apps add': () => import('./apps.ts'),
  'apps set': () => import('./apps.ts'),
  'apps remove': () => import('./apps.ts'),
  'apps secret': () => import('./apps.ts'),
  'users list': () => import('./users.ts'),
  'users show': () => import('./users-show.ts'),
  'users suspend': () => import('./users.ts'),
  'users activate': () => import('./users.ts'),
  'users delete': () => import('./users.ts'),
  'users clear-limits': () => import('./users.ts'),
  'users set-role': () => import('./users.ts'),
  'keys import': () => import('./import.ts'),
  'users import': () => import('./import.ts'),
  'keys revoke': () => import('./keys.ts'),
  'keys limit': () => import('./keys.ts'),
  'keys rotate-signing': () => import('./keys.ts'),
  'keys reseal': () => import('./reseal.ts'),
  credit: () => import('./credit.ts'),
  audit: () => import('./audit.ts'),
  usage: () => import('./usage.ts'),
  backup: () => import('./backup.ts'),
  restore: () => import('./restore.ts'),
  'journal replay': () => import('./journal.ts'),
  inbox: () => import('./inbox.ts'),
  'mail test': () => import('./mail-test.ts'),
  'mail unsuppress': () => import('./mail-unsuppress.ts'),
  doctor: () => import('./doctor.ts'),
}

export const commandNames = Object.keys(loaders)

/** The command at the start of an argument list, and the remaining arguments; null if there is none. */
export function findCommand(args: string[]): { name: string; rest: string[] } | null {
  for (const length of [2, 1]) {
    const name = args.slice(0, length).join(' ')
    if (Object.hasOwn(loaders, name)) return { name, rest: args.slice(length) }
  }
  return null
}

export async function loadCommand(name: string): Promise<Command> {
  const { commands } = await loaders[name]!()
  return commands.find(command => command.name === name)!
}
