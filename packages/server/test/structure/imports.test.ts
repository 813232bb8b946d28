import assert from 'node:assert/strict'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { sourceFiles, src } from './source.ts'

/** Top-level files that do not depend on the nouns, and that every file may import. */
const KERNEL = [
  'cache-control',
  'change-limits',
  'csv',
  'content-coding',
  'errors',
  'folders',
  'events',
  'clock',
  'ids',
  'keyed-windows',
  'known-networks',
  'lines',
  'secrets',
  'log',
  'nearest-name',
  'network',
  'operator-error',
  'own-files',
  'paging',
  'problems',
  'rate-windows',
  'reloading',
  'request-id',
  'sliding-count',
  'store',
  'version',
].map(f => `${f}.ts`)
/** Folders of nouns that most other nouns may import. */
const SMALL_NOUNS = ['security-events', 'endings', 'apps', 'audit', 'languages']
/** Folders that are named after the thing that they define. */
const NOUNS = [
  'administration',
  ...SMALL_NOUNS,
  ...[
    'outbox',
    'billing',
    'brand',
    'users',
    'sessions',
    'signing-keys',
    'api-keys',
    'agent-tokens',
    'consents',
    'authorizations',
    'logout-notices',
    'clients',
    'device-authorizations',
    'introspection',
    'limits',
    'magic-links',
    'backup',
    'hub',
    'invitations',
    'account-changes',
    'policies',
    'usage',
    'statistics',
    'webhooks',
  ],
]
/** Folder or top-level file → the folders and files that it may import besides itself and the kernel. */
const MAY_IMPORT: Record<string, string[]> = {
  'security-events': [],
  languages: [],
  audit: ['security-events'],
  endings: [
    'audit',
    'security-events',
    'billing/ledger.ts',
    'billing/money.ts',
    'hub/presence-store.ts',
    'sessions/session.ts',
    'webhooks/webhook-event.ts',
  ],
  apps: ['audit', 'signing-keys/signing-key.ts'],
  outbox: ['audit', 'users/user.ts', 'users/email-address.ts'],
  billing: ['usage/usage.ts', 'users/user.ts', 'api-keys/api-key.ts', 'limits/limit.ts', ...SMALL_NOUNS],
  users: ['billing', 'outbox', ...SMALL_NOUNS],
  'signing-keys': SMALL_NOUNS,
  sessions: ['users', 'outbox', 'signing-keys', ...SMALL_NOUNS],
  consents: SMALL_NOUNS,
  'logout-notices': ['outbox/interruption.ts', 'signing-keys', ...SMALL_NOUNS],
  outgoing: [],
  webhooks: ['outbox', 'outgoing', ...SMALL_NOUNS],
  clients: ['outgoing', 'signing-keys/signing-key.ts', ...SMALL_NOUNS],
  authorizations: ['consents', 'sessions', 'users', 'signing-keys', ...SMALL_NOUNS],
  'magic-links': ['sessions', 'users', 'policies', 'invitations', 'billing', 'outbox', ...SMALL_NOUNS],
  'device-authorizations': [
    'consents',
    'policies',
    'api-keys',
    'outbox',
    'sessions',
    'signing-keys',
    ...SMALL_NOUNS,
    'magic-links/code-limits.ts',
    'magic-links/send-limits.ts',
    'magic-links/typed-code.ts',
    'users',
  ],
  'account-changes': ['magic-links/send-limits.ts', 'policies', 'outbox', 'users', 'security-events'],
  limits: ['billing/money.ts'],
  invitations: ['outbox', 'users', ...SMALL_NOUNS],
  policies: ['billing/money.ts', 'users/email-address.ts', ...SMALL_NOUNS],
  'api-keys': [
    'limits',
    'policies',
    'billing/spend.ts',
    'billing/money.ts',
    'users',
    'outbox',
    ...SMALL_NOUNS,
  ],
  'agent-tokens': ['api-keys', 'limits', 'users', 'signing-keys', ...SMALL_NOUNS],
  introspection: [
    'billing',
    'limits',
    'agent-tokens',
    'api-keys',
    'sessions',
    'signing-keys',
    'users',
    ...SMALL_NOUNS,
  ],
  usage: [],
  statistics: ['usage', 'endings'],
  brand: [],
  backup: [],
  administration: ['hub/presence-store.ts', 'outbox', 'users/email-address.ts', ...SMALL_NOUNS],
  hub: ['usage/usage.ts', 'api-keys/api-key.ts'],
  storage: [...NOUNS, 'config.ts', 'operations/reseal.ts'],
  mail: [...NOUNS, 'config.ts'],
  // Grants and other endpoints for OAuth clients. They use the nouns, and do not know HTTP.
  oauth: [...NOUNS, 'outgoing'],
  http: [...NOUNS, 'oauth', 'config.ts', '../../python/pack.ts'],
  web: [...NOUNS, 'config.ts'],
  metrics: [...NOUNS, 'config.ts'],
  processes: ['metrics'],
  config: [
    'brand',
    'languages',
    'billing/money.ts',
    'magic-links/send-limits.ts',
    'limits/limit.ts',
    'users/email-address.ts',
  ],
  'config.ts': ['config'],
  operations: [
    ...NOUNS,
    'config.ts',
    'services.ts',
    'http/http-ports.ts',
    'mail/inbox.ts',
    'storage/data-dir-lock.ts',
  ],
  'services.ts': [...NOUNS, 'config.ts', 'mail', 'storage'],
  'server.ts': [
    ...NOUNS,
    'config.ts',
    'services.ts',
    'operations',
    'mail',
    'http',
    'oauth',
    'web',
    'metrics',
    'storage',
  ],
  cli: [
    ...NOUNS,
    'config.ts',
    'services.ts',
    'operations',
    'processes',
    'server.ts',
    'mail',
    'storage',
    'http/app-object.ts',
    'http/import-objects.ts',
    'http/validation.ts',
    'http/user-object.ts',
    'http/usage-object.ts',
    'http/limits-object.ts',
  ],
  'cli.ts': ['cli'],
}

test('every file imports only what the rule of its folder allows', async () => {
  const violations: string[] = []
  for (const file of await sourceFiles()) {
    const importer = relative(src, file.path)
    const folder = importer.includes('/') ? importer.split('/')[0]! : importer
    const allowedImports = MAY_IMPORT[folder] ?? (KERNEL.includes(folder) ? [] : null)
    if (!allowedImports) {
      violations.push(`${importer} has no rule here: what may it import?`)
      continue
    }
    for (const { target, typeOnly } of localImports(file)) {
      if (target.startsWith(`${folder}/`) || KERNEL.includes(target)) continue
      if (typeOnly && target.split('/').at(-1)!.endsWith('-store.ts')) continue
      if (typeOnly && NOUNS.includes(target.split('/')[0]!) && isNounFile(target)) continue
      if (allowedImports.some(each => target === each || target.startsWith(`${each}/`))) continue
      violations.push(`${importer} must not import ${target}`)
    }
  }
  assert.deepEqual(violations, [])
})

test('there are no import circles, neither by value nor by type', async () => {
  const imports = new Map<string, string[]>()
  for (const file of await sourceFiles()) {
    imports.set(
      relative(src, file.path),
      localImports(file).map(({ target }) => target),
    )
  }
  assert.deepEqual(cyclesOf(imports), [])
})

/** Whether this is the file of a noun's types (`user.ts`), which every file may import as types. */
function isNounFile(target: string): boolean {
  const name = target.split('/').at(-1)!.replace(/\.ts$/, '')
  return !name.endsWith('s') || name === 'send-limits'
}

/** A file's static imports of the server's files. `typeOnly`: every imported name is a type, so no module is loaded. */
function localImports(file: { path: string; text: string }): { target: string; typeOnly: boolean }[] {
  return [
    ...file.text.matchAll(/^(?:import|export)\s+(type\s)?([^'";]*?)(?:\sfrom\s)?'(\.[^']+\.ts)'/gm),
  ].map(([, type, names = '', specifier]) => ({
    target: relative(src, join(dirname(file.path), specifier!)),
    typeOnly: type !== undefined || areTypes(names),
  }))
}

/** Whether all imported names are marked as types, as in `{ type A, type B }`. */
function areTypes(names: string): boolean {
  const members = /^\{([^}]*)\}$/.exec(names.trim())?.[1]?.split(',') ?? []
  const memberNames = members.map(name => name.trim()).filter(Boolean)
  return memberNames.length > 0 && memberNames.every(name => name.startsWith('type '))
}

/** The strongly connected components of more than one file (Tarjan 1972), each sorted. */
function cyclesOf(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const lowestReachable = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[][] = []
  for (const file of imports.keys()) if (!order.has(file)) visit(file)
  return cycles

  function visit(file: string): void {
    order.set(file, order.size)
    lowestReachable.set(file, order.get(file)!)
    stack.push(file)
    for (const target of imports.get(file) ?? []) {
      if (!imports.has(target)) continue
      if (!order.has(target)) visit(target)
      if (stack.includes(target))
        lowestReachable.set(file, Math.min(lowestReachable.get(file)!, lowestReachable.get(target)!))
    }
    if (lowestReachable.get(file) !== order.get(file)) return
    const component = stack.splice(stack.indexOf(file))
    if (component.length > 1) cycles.push(component.sort())
  }
}
