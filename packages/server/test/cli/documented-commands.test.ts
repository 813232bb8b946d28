import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { findCommand, loadCommand } from '../../src/cli/commands.ts'
import { root } from '../structure/source.ts'
import { keyway, outputOf } from '../support/command-line.ts'
import { freePort } from '../support/free-port.ts'
import { call, createKey, exchange, NODE_SECRET, type SignedIn } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { serve, temporaryFolder } from '../support/serve.ts'

const DOCUMENTS = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs/*.md', 'examples/README.md']
/** Commands that need the running service. */
const WHILE_SERVING = ['doctor', 'mail test', 'inbox']
/** Commands that change nothing without at least one option. */
const WITH_AN_OPTION = ['apps set', 'keys limit']
/** Values of the documents' placeholders that hold for one command only; `populate` returns the others. */
const PLACEHOLDERS_OF_COMMAND: Record<string, (folder: string) => Record<string, string>> = {
  'apps add': () => ({ ID: 'new' }),
  'users import': folder => ({ FILE: writeImportFile(folder, { email: 'bob@example.com', name: 'Bob' }) }),
  'keys import': folder => ({
    FILE: writeImportFile(folder, { email: ADDRESS, sha256: 'ab'.repeat(32), prefix: 'old_', scopes: [] }),
  }),
}
const ADDRESS = 'ada@example.com'
const run = promisify(execFile)

/** The commands of the documents as they are printed, each once, with a file that contains it. */
const documentedCommands = new Map(
  globSync(DOCUMENTS, { cwd: root }).flatMap(file => {
    const text = readFileSync(join(root, file), 'utf8')
    const inlineCommands = [...text.matchAll(/`(?:npx )?keyway ([a-z][^`]*)`/g)].map(([, words]) => words!)
    return [...inlineCommands, ...blocksOf(text).flatMap(commandsOf)].map(words => [words, file] as const)
  }),
)

describe('the commands in the documents', () => {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const settings: Record<string, string> = {
    KEYWAY_DATA_DIR: data,
    KEYWAY_LOG_LEVEL: 'silent',
    KEYWAY_SECRET: NODE_SECRET,
  }
  let values: Record<string, string> = {}
  const argumentsOf = (words: string) => {
    const { name, rest } = findCommand(wordsOf(words))!
    const commandValues = { ...values, ...PLACEHOLDERS_OF_COMMAND[name]?.(folder.path) }
    return [...name.split(' '), ...rest.map(word => commandValues[word] ?? word)]
  }

  before(async () => {
    settings.KEYWAY_PORT = String(await freePort())
    settings.KEYWAY_PUBLIC_URL = `http://localhost:${settings.KEYWAY_PORT}`
    const server = await serve(settings)
    try {
      values = await populate(server.url)
      for (const words of documentedCommands.keys())
        if (WHILE_SERVING.includes(findCommand(wordsOf(words))?.name ?? '') && (await isComplete(words)))
          await outputOf(keyway(settings, ...argumentsOf(words)))
      await runOAuthGuide(server.url)
    } finally {
      await server.end('SIGTERM')
    }
    await outputOf(keyway(settings, 'backup', values.FILE!))
  })
  after(() => folder.remove())

  test('exist, with their options', async () => {
    assert.ok(documentedCommands.size > 25, `${documentedCommands.size}`)
    for (const [words, file] of documentedCommands) {
      const command = findCommand(wordsOf(words))
      assert.ok(command, `${file}: keyway ${words}`)
      const { options } = await loadCommand(command.name)
      for (const [, option] of words.matchAll(/ --([\w-]+)/g))
        assert.ok(option === 'help' || options?.[option!], `${file}: keyway ${words}`)
    }
  })

  test('work as documented in a new directory', async t => {
    let count = 0
    for (const [words, file] of documentedCommands) {
      const { name } = findCommand(wordsOf(words))!
      if (name === 'serve' || WHILE_SERVING.includes(name) || !(await isComplete(words))) continue
      const ownDataDir = join(folder.path, `data-${count++}`)
      if (name !== 'restore') cpSync(data, ownDataDir, { recursive: true })
      const { status, err } = await keyway(
        { ...settings, KEYWAY_DATA_DIR: ownDataDir },
        ...argumentsOf(words),
      )
      assert.equal(status, 0, `${file}: keyway ${words}\n${err}`)
    }
    t.diagnostic(`${count} commands`)
    assert.ok(count > 15)
  })

  async function populate(url: string): Promise<Record<string, string>> {
    const { user, access_token } = await signIn(url)
    const { id, key } = (await createKey(url, access_token)).body
    await exchange(url, key)
    await outputOf(
      keyway(
        settings,
        'apps',
        'add',
        'drafts',
        '--name',
        'Drafts',
        '--redirect-uri',
        'https://drafts.example.com/',
      ),
    )
    return {
      ADDRESS,
      WHO: ADDRESS,
      'you@example.com': ADDRESS,
      ID: 'drafts',
      KEY_ID: id,
      API_KEY: key,
      USER_ID: user.id,
      NAME: 'Drafts',
      URL: 'https://drafts.example.com/callback',
      FILE: join(folder.path, 'backup.keyway'),
      DIR: join(data, 'journal'),
      'data/journal': join(data, 'journal'),
      '/backup/keyway-$(date': join(folder.path, 'nightly.keyway'),
      AMOUNT: '5.00',
    }
  }

  async function signIn(url: string): Promise<SignedIn> {
    await call(url, 'POST', '/auth/send-magic-link', { body: { email: ADDRESS } })
    const mail = await until('the mail', async () => {
      const { body } = await call(url, 'GET', `/inbox?to=${ADDRESS}`, {
        headers: { accept: 'application/json' },
      })
      return /token=([\w-]{43})/.exec(JSON.stringify(body))?.[1]
    })
    return (await call(url, 'POST', '/auth/verify-magic-link', { body: { email: ADDRESS, token: mail } }))
      .body
  }

  /** Runs the commands of docs/oauth.md one after the other, with the secret that `apps add` prints. */
  async function runOAuthGuide(url: string): Promise<void> {
    const blocks = blocksOf(readFileSync(join(root, 'docs/oauth.md'), 'utf8'))
    const [addCommand] = blocks.flatMap(commandsOf)
    const secret = /secret\W+(\S+)/i.exec(await outputOf(keyway(settings, ...wordsOf(addCommand!))))![1]!
    await outputOf(
      keyway(settings, 'apps', 'add', 'files', '--name', 'Files', '--audience', 'https://files.example.com'),
    )
    const env = {
      ...process.env,
      KEYWAY: url,
      KEY_ID: values.KEY_ID,
      API_KEY: values.API_KEY,
      SECRET: secret,
    }
    const curlBlocks = blocks.filter(block => block.startsWith('curl'))
    assert.equal(curlBlocks.length, 3)
    for (const block of curlBlocks) {
      const { stdout } = await run('sh', ['-c', block], { env })
      assert.match(stdout, /"access_token":/, block)
    }
    for (const app of ['shop', 'files']) await outputOf(keyway(settings, 'apps', 'remove', app))
  }
})

function writeImportFile(folder: string, line: object): string {
  const path = join(folder, 'import.jsonl')
  writeFileSync(path, `${JSON.stringify(line)}\n`)
  return path
}

function blocksOf(text: string): string[] {
  return [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!)
}

/** The arguments of each line of a block that calls `keyway`. */
function commandsOf(block: string): string[] {
  return [...block.matchAll(/^(?:npx )?keyway (.*?)(?: +#.*)?$/gm)].map(([, words]) => words!)
}

function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)]
    .map(([, double, single, plain]) => double ?? single ?? plain!)
    .filter(word => word !== '+%F).keyway')
}

/** Whether a command line has all its arguments; otherwise the document only mentions the command. */
async function isComplete(words: string): Promise<boolean> {
  const { name, rest } = findCommand(wordsOf(words))!
  const { args, options } = await loadCommand(name)
  const requiredOptions = Object.entries(options ?? {}).filter(([, option]) => option.required)
  if (rest.includes('--help')) return true
  if (WITH_AN_OPTION.includes(name) && !words.includes(' --')) return false
  return (
    rest.filter(word => !word.startsWith('--')).length >= args.length &&
    requiredOptions.every(([option]) => rest.includes(`--${option}`))
  )
}
