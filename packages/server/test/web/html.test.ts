import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { installOnce } from '../../../../tools/npm-folder.ts'
import { root } from '../structure/source.ts'
import { type OpenPages, openFirstPages, openPages, sourceOf } from '../support/all-pages.ts'
import { sharedBrowser } from '../support/browser.ts'
import { MUST_HAVE_ALL } from '../support/missing-servers.ts'

const openBrowser = sharedBrowser()
const FOLDER = join(root, 'tools/html-validate')

/** The part of html-validate's types that is used. */
interface Validator {
  validateString(html: string): Promise<Report>
}
interface Report {
  results: { messages: { ruleId: string; line: number; message: string }[] }[]
}
interface Library {
  HtmlValidate: new (loader: unknown) => Validator
  StaticConfigLoader: new (config: object) => unknown
}

const CONFIG = {
  root: true,
  extends: ['html-validate:recommended'],
  rules: {
    'doctype-style': ['error', { style: 'lowercase' }],
    // The default types of buttons and inputs (submit, text) are used on purpose.
    'no-implicit-button-type': 'off',
    'no-implicit-input-type': 'off',
    'form-dup-name': ['error', { shared: ['radio', 'checkbox', 'button', 'submit'] }],
    // Checkboxes have the names of webhook events, which contain a dot, as their ids.
    'valid-id': ['error', { relaxed: true }],
    // A mail's text has trailing whitespace before its signature.
    'no-trailing-whitespace': 'off',
    // Without scripts, a page that waits for something reloads itself by this.
    'meta-refresh': 'off',
  },
}

async function sourcesOf({ page, urls }: OpenPages): Promise<[url: string, html: string][]> {
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
  const headers = { accept: 'text/html', cookie }
  return await Promise.all(urls.map(async url => [url, await sourceOf(url, headers)] as [string, string]))
}

test('html-validate finds nothing on any page', async t => {
  if (!(await installOnce(FOLDER))) {
    assert.ok(!MUST_HAVE_ALL, 'html-validate cannot be installed: run npm ci in tools/html-validate')
    return t.skip('html-validate cannot be had here (npm ci in tools/html-validate failed)')
  }
  const browser = await openBrowser(t)
  if (!browser) return
  const { HtmlValidate, StaticConfigLoader } = createRequire(join(FOLDER, 'package.json'))(
    'html-validate',
  ) as Library
  const validator = new HtmlValidate(new StaticConfigLoader(CONFIG))
  const findings: string[] = []
  for (const opened of [await openFirstPages(t, browser), await openPages(t, browser)]) {
    for (const [url, html] of await sourcesOf(opened)) {
      const { results } = await validator.validateString(html)
      for (const { ruleId, line, message } of results.flatMap(({ messages }) => messages))
        findings.push(`${new URL(url).pathname}:${line} ${ruleId}: ${message}`)
    }
  }
  assert.deepEqual(findings, [])
})
