import { mkdirSync } from 'node:fs'
import { Agent } from '@keyway/sdk'
import { tool } from '../../../../tools/install.ts'
import { launch, type Page } from './browser.ts'
import { signIn, startWeb } from './web.ts'

mkdirSync('/tmp/pages/shots', { recursive: true })
const t = { skip() {} } as any
await tool(t, 'playwright-core')
const b = await launch((await tool(t, 'chromium'))!)
const web = await startWeb(null)
const c = await b.newContext({ viewport: { width: 1280, height: 800 }, permissions: ['clipboard-write'] })
c.setDefaultTimeout(60000)
const p = await c.newPage()
const only = process.argv[2] ?? ''
async function take(page: Page, name: string) {
  if (only && !name.includes(only)) return
  for (const [w, scheme] of [
    [320, 'light'],
    [390, 'dark'],
    [1280, 'light'],
    [1280, 'dark'],
  ] as const) {
    await page.setViewportSize({ width: w, height: 800 })
    await page.emulateMedia({ colorScheme: scheme })
    await page.screenshot({ path: `/tmp/pages/shots/${name}-${w}-${scheme}.png`, fullPage: true })
    const over = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    if (over > 0) console.log('OVERFLOW', name, w, over)
  }
}
await p.goto(`${web.url}/sign-in`)
await p.getByLabel('E-mail address').fill('ada@example.com')
await p.getByRole('button', { name: 'Send me a link' }).click()
await p.waitForURL('**/check-mail')
await take(p, 'o-check')
await p.goto(`${web.url}/inbox`)
await p.locator('li.item').waitFor()
await take(p, 'p-inbox')
await p.locator('li.item a.name').click()
await take(p, 'q-mail')
await signIn(p, web, 'ada@example.com')
await take(p, 'a-first')
await p.getByLabel('Name').fill('living-room robot')
await p.getByRole('button', { name: 'Create key' }).click()
await p.locator('#new-key').waitFor()

const key = (await p.locator('#new-key').textContent())!
const id = p.url().match(/keys\/([0-9a-f-]+)/)![1]
await p.evaluate('document.querySelector(".help").open = true')
await take(p, 'c-help')
const agent = new Agent({ url: web.url, apiKey: key })
agent.onRequest(() => 'Hello from workshop, Node v26.1.0')
await p.locator('.live.on').waitFor()
await take(p, 'd-live')
await p.locator('#live-card').getByRole('button', { name: 'Say hello' }).click()
await p.locator('.answer').waitFor()
await p.locator('#live-card summary').click()
await take(p, 'e-hello')
const p2 = await c.newPage()
await p2.goto(`${web.url}/keys/${id}`)
await take(p2, 'k-key')
await p2.goto(`${web.url}/agents`)
await p2.getByRole('button', { name: 'Say hello' }).click()
await p2.locator('.answer').waitFor()
await take(p2, 'g-agents')
await p2.evaluate('document.querySelector("#agents").classList.add("lost")')
await take(p2, 'h-lost')
await p2.getByRole('link', { name: 'Disconnect' }).click()
await p2.getByText('connects again').waitFor()
await take(p2, 'i-disconnect')
await p2.goto(`${web.url}/keys`)
await take(p2, 'j-keys')
await p2.goto(`${web.url}/keys/new`)
await p2.getByLabel('Only what I choose').check()
await p2.locator('details summary').click()
await p2.getByLabel('Only from these networks').fill('here')
await p2.getByRole('button', { name: 'Create key' }).click()
await p2.getByText('is no network').waitFor()
await take(p2, 'l-form')
await p2.goto(`${web.url}/keys/${id}`)
await p2.locator('details').last().locator('summary').click()
await take(p2, 'n-limits')
await p2.goto(`${web.url}/account`)
await take(p2, 'r-account')
await p.getByRole('button', { name: 'Revoke this key' }).click()
await p.locator('.live.off').waitFor()
await take(p, 'f-closed')
agent.close()
const n = await b.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 800 } })
n.setDefaultTimeout(60000)
const q = await n.newPage()
await signIn(q, web, 'ada@example.com')
await q.goto(`${web.url}/keys/new`)
await q.getByRole('button', { name: 'Create key' }).click()
await q.locator('#new-key').waitFor()
await q.screenshot({ path: '/tmp/pages/shots/m-noscript.png', fullPage: true })
await b.close()
await web.close()
