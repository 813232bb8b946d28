import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { sharedBrowser } from '../support/browser.ts'
import { createWorld, playTask, SUPPORT_TASKS } from '../support/support-tasks.ts'
import { newPerson, signIn, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

test('the ten everyday tasks of support are done on pages, without a command line and without scripts', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t, { KEYWAY_MAGIC_LINK_LIMITS: '4/minute' })
  const world = createWorld(web)
  const { page } = await newPerson(browser, { javaScriptEnabled: false })
  await signIn(page, web, 'support@example.com')
  const { id } = (await world.store.users.findByEmail(parseEmailAddress('support@example.com')!))!
  await world.services.users.setRole(id, 'admin', BY_COMMAND_LINE)
  for (const task of SUPPORT_TASKS)
    await t.test(task.title, async t => {
      const { clicks, typed, seconds } = await playTask(world, page, task)
      t.diagnostic(`${clicks} clicks, ${typed} fields, ${seconds.toFixed(1)} s`)
    })
})
