import { readFileSync, writeFileSync } from 'node:fs'
import { Keyway } from '../../src/client.ts'
import { fileTokenStore } from '../../src/node.ts'

/**
 * A process that shares a token file with others: `node token-process.ts FILE WHAT ON`. `ON` is the service's URL, or
 * the file of a counter.
 */
const [file = '', what, on = ''] = process.argv.slice(2)
const tokens = fileTokenStore(file)
let refreshes = 0

if (what === 'call') {
  await client().account.get()
  console.log(`refreshed ${refreshes}`)
} else if (what === 'refresh') {
  const keyway = client()
  for (let n = 0; n < 3; n++) await keyway.refresh()
  console.log(`refreshed ${refreshes}`)
} else if (what === 'lose the answer') await client().refresh()
else if (what === 'hold') await tokens.exclusive!(hold)
else if (what === 'add') for (let n = 0; n < 5; n++) await tokens.exclusive!(add)

function client(): Keyway {
  return new Keyway({ url: on, tokens, fetch: counting })
}

async function counting(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init)
  if (!String(input).endsWith('/auth/refresh')) return response
  refreshes++
  if (what === 'lose the answer') {
    console.log('sent')
    await until('killed')
  }
  return response
}

async function hold(): Promise<void> {
  console.log('holding')
  await until('killed')
}

/** Reads, then writes: if two processes did so concurrently, one increment would be lost. */
async function add(): Promise<void> {
  const count = Number(readFileSync(on, 'utf8'))
  await new Promise(resolve => setTimeout(resolve, 1))
  writeFileSync(on, String(count + 1))
}

function until(_: 'killed'): Promise<never> {
  return new Promise(() => setInterval(() => {}, 60_000))
}
