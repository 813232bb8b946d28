import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import {
  call,
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  type PrintedLinks,
  revokeKey,
  signIn,
  startNode,
  type TestNode,
  verifyLink,
} from '../support/nodes.ts'
import { caller } from '../support/services.ts'
import { charge, giveConsent, registerShop } from './commands.ts'
import { type Loss, openRewindable } from './rewind.ts'

/**
 * A database that lost its last transactions, with revocations, logouts and deletions among them; no server runs on it
 * yet.
 */
export async function loseLastTransactions(loss: Loss, t: TestContext) {
  const database = await openRewindable(loss, t)
  const links = createPrintedLinks()
  const firstNode = await startNode(t, database.settings, links)
  const secret = await registerShop(firstNode)
  const replacedSecret = await registerPress(firstNode)
  const people = await openAccounts(firstNode, links)
  await firstNode.close()
  const savedState = await database.saveState()
  const secondNode = await startNode(t, database.settings, links)
  const beforeLoss = await makeLostChanges(secondNode, links, people, secret)
  await secondNode.close()
  return { ...people, links, secret, replacedSecret, beforeLoss, settings: await savedState.rewind() }
}

/** Registers `press`, whose secret is replaced later, and `wire`, which is removed later; returns that secret. */
async function registerPress({ services }: TestNode): Promise<string> {
  await services.apps.register({ id: 'wire', name: 'Wire', audience: 'https://wire.example.com' })
  await services.apps.register({ id: 'press', name: 'Press' })
  return (await services.apps.newSecret('press')).secret
}

/**
 * Opens five accounts with what `makeLostChanges` changes: keys, an authorized app, a consent, an unused link, an
 * invitation and a requested deletion.
 */
async function openAccounts(node: TestNode, links: PrintedLinks) {
  const { origin, services } = node
  const keyOf = async (token: string): Promise<{ id: string; key: string }> =>
    (await createKey(origin, token)).body
  const openAccount = async (name: string) => {
    const signedIn = await signIn(origin, links, `${name}@example.com`)
    return { ...signedIn, key: await keyOf(signedIn.access_token) }
  }
  const ann = await openAccount('ann')
  const [bob, cat, dan] = [await openAccount('bob'), await openAccount('cat'), await openAccount('dan')]
  const token = ann.access_token
  // There are two administrators, since the last one cannot lose the role.
  const eve = await openAccount('eve')
  for (const { user } of [dan, eve]) await services.users.setRole(user.id, 'admin', BY_COMMAND_LINE)
  const keys = {
    revoked: ann.key,
    rotated: await keyOf(token),
    networkRestricted: await keyOf(token),
    untouched: await keyOf(token),
  }
  await call(origin, 'PUT', '/v1/me/charge-authorizations/shop', { token })
  await giveConsent(node, ann.user.id, 'shop')
  await call(origin, 'POST', '/auth/send-magic-link', { body: { email: 'dan@example.com' } })
  const unusedLink = await links.next('dan@example.com')
  const guest = { email: parseEmailAddress('guest@example.com')!, role: 'admin' as const }
  const { id: invitation } = await services.invitations.invite(guest, BY_COMMAND_LINE)
  await services.deletions.request(eve.user.id, caller())
  return { ann, keys, bob, cat, dan, eve, unused: unusedLink, invitation }
}

/** Makes changes of every kind, which are lost later. Each of them is acknowledged. */
async function makeLostChanges(
  { origin, services: { users, apps, deletions, invitations, policies, storage } }: TestNode,
  links: PrintedLinks,
  { ann, keys, bob, cat, dan, eve, unused, invitation }: Awaited<ReturnType<typeof openAccounts>>,
  secret: string,
) {
  const token = ann.access_token
  await invitations.revoke(invitation, BY_COMMAND_LINE)
  await policies.change({ defaultKeyLifetimeDays: 7 }, BY_COMMAND_LINE)
  const revokedKey = (await revokeKey(origin, token, keys.revoked.id)).body
  const path = `/v1/api-keys/${keys.rotated.id}`
  const overlap = { overlap_seconds: 3600 }
  assert.equal((await call(origin, 'POST', `${path}/rotate`, { token, body: overlap })).status, 201)
  const rotatedKey = (await call(origin, 'GET', path, { token })).body
  const networks = { allowed_networks: ['192.0.2.0/24'] }
  await call(origin, 'PATCH', `/v1/api-keys/${keys.networkRestricted.id}`, { token, body: networks })
  assert.equal((await exchange(origin, keys.networkRestricted.key)).body.code, 'network_not_allowed')
  await users.suspend(bob.user.id, BY_COMMAND_LINE)
  await users.delete(cat.user.id, BY_COMMAND_LINE)
  await users.setRole(dan.user.id, 'user', BY_COMMAND_LINE)
  await apps.newSecret('press')
  await apps.newSecret('press')
  await apps.remove('wire')
  assert.equal((await verifyLink(origin, 'dan@example.com', unused)).status, 200)
  const logoutAnswer = await call(origin, 'POST', '/auth/logout', {
    body: { refresh_token: dan.refresh_token },
  })
  assert.equal(logoutAnswer.status, 204)
  await call(origin, 'DELETE', '/v1/me/charge-authorizations/console', { token })
  assert.equal((await call(origin, 'DELETE', '/v1/consents/shop', { token })).status, 204)
  const lostCharge = (await charge(origin, secret, ann.user.id, 'lost-charge-0', '0.10', keys.untouched.id))
    .body
  assert.equal((await charge(origin, secret, ann.user.id, 'lost-charge-1')).status, 201)
  await signIn(origin, links, 'fay@example.com')
  assert.equal((await call(origin, 'DELETE', '/v1/me', { token })).status, 200)
  await deletions.cancel(eve.user.id, caller())
  return {
    revokedAt: revokedKey.revoked_at,
    expiresAt: rotatedKey.expires_at,
    account: (await me(origin, token)).body,
    consent: await storage.store.consents.find(ann.user.id, 'shop'),
    charged: lostCharge,
    ledger: (await call(origin, 'GET', '/v1/me/ledger', { token })).body.data,
  }
}

export function me(origin: string, token: string) {
  return call(origin, 'GET', '/v1/me', { token })
}

export async function connect({ origin }: TestNode, { key }: { key: string }) {
  const answer = await exchange(origin, key)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return connectHub(origin, answer.body.token)
}

const TABLES = [
  'users',
  'api_keys',
  'sessions',
  'magic_links',
  'ledger_entries',
  'balances',
  'trial_credits',
  'apps',
  'app_secrets',
  'invitations',
  'policies',
  'charge_authorizations',
  'consents',
  'endings',
  'security_events',
]

/** Masks the last use of a key, which a running node writes some seconds late. */
const NO_LAST_USE = { last_used_at: null, last_used_network: null, last_used_client: null }

/** All rows that a replay may write, without the columns that a running node changes by itself. */
export async function rowsOf(settings: Record<string, string>): Promise<unknown> {
  const storage = await createStorage(loadConfig({ ...settings }), createLog('silent'))
  try {
    const rowsByTable: Record<string, unknown> = {}
    for (const table of TABLES) {
      const { rows } = await storage.engine.connection.execute(`select * from ${table}`, [])
      rowsByTable[table] = rows.map(row => JSON.stringify({ ...(row as object), ...NO_LAST_USE })).sort()
    }
    return rowsByTable
  } finally {
    await storage.close()
  }
}
