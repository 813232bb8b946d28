import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { keyway, outputOf } from '../support/command-line.ts'
import { type EngineName, postgresMissing } from '../support/engines.ts'
import { createPrintedLinks, NODE_SECRET, signIn, startNode } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { isSignedBy, openEndpoint } from '../support/webhook-endpoint.ts'
import { freshSettings } from './commands.ts'

const OTHER_SECRET = Buffer.alloc(32, 6).toString('base64')
const PRIVATE_NETWORKS = { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }
const enginePairs: [EngineName, EngineName][] = [
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
]

for (const [from, to] of enginePairs) {
  describe(`webhooks of ${from} restored into ${to}`, { skip: postgresMissing() }, () => {
    test('keep their secrets, also after KEYWAY_SECRET was replaced, their queued events and their sequence numbers', async t => {
      const endpoint = await openEndpoint(t)
      endpoint.answer = () => 503
      const settings: Record<string, string> = { ...(await freshSettings(from, t)), ...PRIVATE_NETWORKS }
      const links = createPrintedLinks()
      const node = await startNode(t, settings, links)
      const webhooks = await node.services.webhooks()
      const newWebhook = { url: endpoint.url, events: ['user.updated' as const] }
      const { webhook, secret } = await webhooks.create(newWebhook, BY_COMMAND_LINE)
      const { user } = await signIn(node.origin, links, 'ann@example.com')
      await node.services.users.rename(user.id, 'Ann')
      await until('a call', () => endpoint.received.length > 0)
      await node.close()

      const settingsWithBothSecrets = { ...settings, KEYWAY_SECRET: `${OTHER_SECRET},${NODE_SECRET}` }
      assert.match(
        await outputOf(keyway(settingsWithBothSecrets, 'keys', 'reseal')),
        /Re-encrypted \d+ values/,
      )
      const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
      await outputOf(keyway(settingsWithBothSecrets, 'backup', file))
      const target = { ...(await freshSettings(to, t)), ...PRIVATE_NETWORKS, KEYWAY_SECRET: OTHER_SECRET }
      await outputOf(keyway(target, 'restore', file, '--keep-keys'))
      endpoint.received.length = 0
      endpoint.answer = () => 200
      const restoredNode = await startNode(t, target, links)
      await restoredNode.services.users.rename(user.id, 'Anna')
      await until('both events', () => endpoint.received.length >= 2)
      assert.deepEqual(
        endpoint.received.map(({ body }) => body.sequence),
        [1, 2],
      )
      assert.ok(endpoint.received.every(event => isSignedBy(event, secret)))
      const [restoredWebhook] = await (await restoredNode.services.webhooks()).list()
      assert.deepEqual([restoredWebhook!.id, restoredWebhook!.events], [webhook.id, ['user.updated']])
    })
  })
}
