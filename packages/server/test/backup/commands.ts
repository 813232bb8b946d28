import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createApps } from '../../src/apps/apps.ts'
import { loadCommand } from '../../src/cli/commands.ts'
import { newId } from '../../src/ids.ts'
import type { ReplayReport } from '../../src/operations/replay-report.ts'
import type { Services } from '../../src/services.ts'
import type { EngineName } from '../support/engines.ts'
import { basicAuthorization } from '../support/http.ts'
import { call, freshPostgres, NODE_SETTINGS, type TestNode } from '../support/nodes.ts'
import { temporaryFolder } from '../support/serve.ts'

/** Settings with a new empty database. */
export async function freshSettings(engine: EngineName, t: TestContext): Promise<Record<string, string>> {
  const settings = settingsWithFolder(t)
  return engine === 'sqlite' ? settings : { ...settings, KEYWAY_DATABASE_URL: await freshPostgres(t) }
}

/** Settings with a new data folder, and a folder for the journal in it. */
export function settingsWithFolder(t: TestContext): Record<string, string> {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const journal = join(folder.path, 'journal')
  return { ...NODE_SETTINGS, KEYWAY_DATA_DIR: folder.path, KEYWAY_JOURNAL_DIR: journal }
}

/** Registers the app `shop`; returns its secret. */
export async function registerShop({ services }: TestNode): Promise<string> {
  const apps = createApps(services)
  await apps.register({ id: 'shop', name: 'Shop', audience: null, verifyUrl: null })
  return (await apps.newSecret('shop')).secret
}

/** Records that a user consented to an app, as the consent page does. */
export async function giveConsent({ services }: TestNode, userId: string, appId: string): Promise<void> {
  const grantedAt = services.clock.now()
  const consent = { id: newId(grantedAt), userId, appId, scopes: ['openid'], grantedAt }
  await services.storage.transaction(tx => tx.consents.grant(consent, 0))
}

/** Charges a user as the app `shop`. */
export function charge(
  origin: string,
  secret: string,
  userId: string,
  idempotencyKey: string,
  amount = '0.10',
  keyId?: string,
) {
  return call(origin, 'POST', '/v1/charges', {
    body: { user_id: userId, amount, description: 'a test', ...(keyId && { key_id: keyId }) },
    headers: { ...basicAuthorization('shop', secret), 'Idempotency-Key': idempotencyKey },
  })
}

/** Runs `keyway journal replay` in this process on open services. */
export async function replayInProcess(services: Services, journal: string, dryRun = false) {
  const command = await loadCommand('journal replay')
  const answer: { data: ReplayAnswer | null; text: string } = { data: null, text: '' }
  const status = await command.run({
    args: [],
    options: { journal, 'dry-run': dryRun },
    repeated: {},
    config: () => services.config,
    settings: () => services.config,
    services: async () => services,
    printLines() {},
    print(data, text) {
      Object.assign(answer, { data, text })
    },
  })
  return { status, text: answer.text, data: answer.data! }
}

export type ReplayAnswer = Omit<ReplayReport, 'openEnds'> & {
  open_ends: { file: string; last_entry_at: string }[]
  journal: string
  dry_run: boolean
}
