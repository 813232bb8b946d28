import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agent } from '../../sdk/src/agent.ts'
import { Keyway } from '../../sdk/src/client.ts'
import { startKeyway } from '../../sdk/test/support/keyway-server.ts'
import { until } from '../../server/test/support/patience.ts'
import { environment, noPython, ROOT, virtualEnvironment } from './support/python.ts'

test('the first five minutes of the Python package’s README work as printed', {
  skip: noPython,
  timeout: 300_000,
}, async t => {
  const { url } = await startKeyway(t)
  const programs = await virtualEnvironment(t)
  const folder = join(programs, '..')
  const chapter = printedChapter().replaceAll('http://localhost:8080', url)
  for (const [, name, program] of chapter.matchAll(/<!-- (\w+\.py) -->\n```python\n([\s\S]*?)```/g))
    writeFileSync(join(folder, name!), program!)
  const lines = [...chapter.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('\n')
  assert.match(lines, /pip install[\s\S]*sign_in\.py[\s\S]*echo\.py/)

  const child = spawn('sh', ['-ec', lines], {
    cwd: folder,
    env: environment({ PATH: `${programs}:${process.env.PATH}` }),
    detached: true,
  })
  t.after(() => {
    if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk))
  const exited = once(child, 'exit')
  const outputMatching = (text: RegExp) =>
    until(
      `${text} in the output`,
      () => {
        if (child.exitCode !== null) throw new Error(output)
        return text.exec(output) ?? undefined
      },
      120_000,
    )

  await outputMatching(/Code from/)
  child.stdin.write(`${await nthCode(url, 1)}\n`)
  const [, connectionId] = await outputMatching(/connected as (\S+)/)

  const ada = new Keyway({ url })
  const { login_id } = await ada.sendMagicLink({ email: 'ada@example.com' })
  const code = await nthCode(url, 2)
  await ada.verifyMagicLink({ login_id, code, email: 'ada@example.com' })
  await ada.agents.send(connectionId!, 'hello')
  await outputMatching(/^api hello$/m)

  const other = new Agent({ url, apiKey: (await ada.apiKeys.create()).key })
  t.after(() => other.close())
  const answer = new Promise(resolve => other.on('message', resolve))
  await other.send(connectionId!, 'are you there?')
  assert.deepEqual(((await answer) as { data: unknown }).data, { echo: 'are you there?' })

  const keys = (await ada.apiKeys.list()).data
  await ada.apiKeys.revoke(keys.find(key => key.name === 'my first agent')!.id)
  assert.deepEqual(await exited, [1, null])
  assert.match(output, /KeywayError: .*was revoked\. Make a new key/)
})

/** The code of ada's nth mail. */
function nthCode(url: string, count: number): Promise<string> {
  return until(`mail ${count}`, async () => {
    const response = await fetch(`${url}/inbox?to=ada@example.com`, {
      headers: { accept: 'application/json' },
    })
    const mails = ((await response.json()) as { data: { code: string | null }[] }).data.filter(
      mail => mail.code,
    )
    return mails.length >= count ? mails[0]!.code : null
  })
}

function printedChapter(): string {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  return /## The first five minutes\n([\s\S]*?)\n## /.exec(readme)![1]!
}
