import assert from 'node:assert/strict'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { sourceFiles, src } from './source.ts'

/** Folder → the folders (and top-level files) it may import besides itself and the kernel. */
const KERNEL = [
  'cache-control',
  'errors',
  'folders',
  'events',
  'clock',
  'ids',
  'secrets',
  'log',
  'nearest-name',
  'network',
  'operator-error',
  'paging',
  'problems',
  'rate-windows',
  'request-id',
  'store',
  'version',
].map(f => `${f}.ts`)
const SMALL_NOUNS = ['security-events', 'endings', 'apps']
const NOUNS = [
  ...SMALL_NOUNS,
  ...[
    'outbox',
    'billing',
    'users',
    'sessions',
    'signing-keys',
    'api-keys',
    'agent-tokens',
    'introspection',
    'magic-links',
    'backup',
    'hub',
  ],
]
const MAY_IMPORT: Record<string, string[]> = {
  'security-events': [],
  endings: ['security-events'],
  apps: [],
  outbox: ['users/user.ts', 'users/email-address.ts'],
  billing: ['users/user.ts', ...SMALL_NOUNS],
  users: ['billing', 'outbox', ...SMALL_NOUNS],
  'signing-keys': SMALL_NOUNS,
  sessions: ['users', 'outbox', 'signing-keys', ...SMALL_NOUNS],
  'magic-links': ['sessions', 'users', 'billing', 'outbox', ...SMALL_NOUNS],
  'api-keys': ['users', 'outbox', ...SMALL_NOUNS],
  'agent-tokens': ['api-keys', 'users', 'signing-keys', ...SMALL_NOUNS],
  introspection: ['agent-tokens', 'api-keys', 'sessions', 'signing-keys', 'users', ...SMALL_NOUNS],
  backup: [],
  hub: ['api-keys/api-key.ts'],
  storage: [...NOUNS, 'config.ts', 'operations/reseal.ts'],
  mail: [...NOUNS, 'config.ts'],
  http: [...NOUNS, 'config.ts'],
  web: [...NOUNS, 'config.ts'],
  metrics: [...NOUNS, 'config.ts'],
}

test('nouns import in one direction, edges never each other, and the kernel only itself', async () => {
  const wrong: string[] = []
  for (const file of await sourceFiles()) {
    const from = relative(src, file.path)
    const folder = from.includes('/') ? from.split('/')[0]! : from
    const allowed = MAY_IMPORT[folder] ?? (KERNEL.includes(folder) ? [] : null)
    if (!allowed) continue // the composition root, the command and the settings may see everything
    for (const { target, typeOnly } of localImports(file)) {
      if (target.startsWith(`${folder}/`) || KERNEL.includes(target)) continue
      if (typeOnly && target.split('/').at(-1)!.endsWith('-store.ts')) continue
      if (typeOnly && NOUNS.includes(target.split('/')[0]!) && isNounFile(target)) continue
      if (allowed.some(each => target === each || target.startsWith(`${each}/`))) continue
      wrong.push(`${from} must not import ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

/** What a thing *is* may be known by name everywhere: types of a singular file (`user.ts`), never its verbs. */
function isNounFile(target: string): boolean {
  const name = target.split('/').at(-1)!.replace(/\.ts$/, '')
  return !name.endsWith('s') || name === 'send-limits'
}

function localImports(file: { path: string; text: string }): { target: string; typeOnly: boolean }[] {
  return [...file.text.matchAll(/^(?:import|export)\s+(type\s)?[^'";]*?from '(\.[^']+)'/gm)].map(
    ([, type, specifier]) => ({
      target: relative(src, join(dirname(file.path), specifier!)),
      typeOnly: type !== undefined,
    }),
  )
}
