import { readFileSync, writeFileSync } from 'node:fs'
import { Keyway } from '../../src/client.ts'
import { fileTokenStore } from '../../src/node.ts'

/**
 * A process that shares a token file with others: `node token-process.ts FILE ACTION TARGET`. `TARGET` is the service's
 * URL, or the path of a file with a counter.
 */
const [file = '', action, target = ''] = process.argv.slice(2)
const tokens = fileTokenStore(file)
let refreshes = 0

if (action === 'call') {
  await client().account.get()
  console.log(`refreshed ${refreshes}`)
} else if (action === 'refresh') {
  const keyway = client()
  for (let n = 0; n < 3; n++) await keyway.refresh()
  console.log(`refreshed ${refreshes}`)
} else if (action === 'lose the answer') await client().refresh()
else if (action === 'hold') await tokens.exclusive!(holdLock)
else if (action === 'add') for (let n = 0; n < 5; n++) await tokens.exclusive!(increment)

function client(): Keyway {
  return new Keyway({ url: target, tokens, fetch: countingFetch })
}

async function countingFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init)
  if (!String(input).endsWith('/auth/refresh')) return response
  refreshes++
  if (action === 'lose the answer') {
    console.log('sent')
    await untilKilled()
  }
  return response
}

async function holdLock(): Promise<void> {
  console.log('holding')
  await untilKilled()
}

/** Reads, then writes: if two processes did so concurrently, one increment would be lost. */
async function increment(): Promise<void> {
  const count = Number(readFileSync(target, 'utf8'))
  await new Promise(resolve => setTimeout(resolve, 1))
  writeFileSync(target, String(count + 1))
}

/** Never resolves; the process lives until it is killed. */
function untilKilled(): Promise<never> {
  return new Promise(() => setInterval(() => {}, 60_000))
}
