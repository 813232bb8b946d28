import { z } from 'zod'
import { loadConfig } from '../packages/server/src/config.ts'
import { newId } from '../packages/server/src/ids.ts'
import { createLog } from '../packages/server/src/log.ts'
import { sha256 } from '../packages/server/src/secrets.ts'
import { openServices } from '../packages/server/src/services.ts'
import { sign } from '../packages/server/src/signing-keys/ed25519.ts'
import { caller } from '../packages/server/test/support/services.ts'
import { benchKey, exchangeBodies, sqliteDatabase } from './support/databases.ts'
import { startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import { startKeyway } from './support/processes.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median } from './support/statistics.ts'

/** Measures the cost of each step of an exchange, in this process, and of the whole exchange through a socket. */

const KEYS = 1000
const ROUNDS = 9
const CALLS = QUICK ? 3000 : 20_000
const RUNS = QUICK ? 3 : 7

pinBench()
await using database = await sqliteDatabase(KEYS)
const wholeExchange = await measureThroughSocket()
const services = await openServices(loadConfig(database.settings), createLog('info'))
const { agentTokens, storage, signingKeys, jwt, clock } = services
const keys = Array.from({ length: KEYS }, (_, n) => benchKey(n))
const hashes = keys.map(sha256)
const body = exchangeBodies(1)[0]!
const schema = z.object({ api_key: z.string(), audience: z.string().nullish() })
const message = Buffer.alloc(560, 1)
const claims = claimsOf((await agentTokens.exchange(keys[0]!, undefined, caller())).token)
const answer = { token: jwt.sign('agent_ws', claims), agent_id: newId(clock.now()), expires_in: 900 }
const { secretKey } = signingKeys.current()
const client = caller()

const lookUpTime = await measureMicroseconds(n => storage.store.apiKeys.findByHash(hashes[n % KEYS]!))
const signatureTime = await measureMicroseconds(() => sign(message, secretKey))
const tokenTime = await measureMicroseconds(() => jwt.sign('agent_ws', claims))
const steps: [string, number][] = [
  ['SHA-256 of the key', await measureMicroseconds(n => sha256(keys[n % KEYS]!))],
  ['look-up of key and owner by index (SQLite)', lookUpTime],
  ['Ed25519 signature', signatureTime],
  ['claims and their encoding', tokenTime - signatureTime],
  ['two ids (request, token)', 2 * (await measureMicroseconds(() => newId(clock.now())))],
  [
    'JSON of the request, and its validation',
    await measureMicroseconds(() => schema.parse(JSON.parse(body))),
  ],
  ['JSON of the answer', await measureMicroseconds(() => JSON.stringify(answer))],
]
const exchangeTime = await measureMicroseconds(n => agentTokens.exchange(keys[n % KEYS]!, undefined, client))
const namedStepsTime = steps.slice(0, 4).reduce((sum, [, each]) => sum + each, 0) + steps[4]![1] / 2
steps.push([
  'the rest of agentTokens.exchange: key status, scope, times, last use, promises',
  exchangeTime - namedStepsTime,
])
const knownStepsTime = exchangeTime + steps[4]![1] / 2 + steps[5]![1] + steps[6]![1]
steps.push(['HTTP: system calls, parser, headers, routing, metrics', wholeExchange - knownStepsTime])
await services.close()

const rows: Row[] = [...steps, ['the whole exchange', wholeExchange] as const].map(([step, each]) => ({
  step,
  µs: each.toFixed(2),
  'share %': Math.round((100 * each) / wholeExchange),
}))
report('breakdown', { 'One exchange on SQLite, microseconds of processor time': rows }, [])

async function measureThroughSocket(): Promise<number> {
  await using load = await startLoad()
  await using server = await startKeyway(database.settings)
  const job = { port: server.port, connections: 32, method: 'POST', path: '/auth/agent-token' }
  const runs: number[] = []
  for (let run = -1; run < RUNS; run++) {
    const result = await load.run(
      { ...job, bodies: exchangeBodies(KEYS), warmUpMs: 300, durationMs: 1500, rate: null },
      server.pid,
    )
    if (run >= 0) runs.push(result.cpuMicroseconds)
  }
  return median(runs)
}

/** The fastest of several rounds, to exclude other work on this core. */
async function measureMicroseconds(step: (n: number) => unknown): Promise<number> {
  let fastest = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now()
    for (let n = 0; n < CALLS; n++) {
      const result = step(n)
      if (result instanceof Promise) await result
    }
    fastest = Math.min(fastest, ((performance.now() - startedAt) * 1000) / CALLS)
  }
  return fastest
}

function claimsOf(text: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(text.split('.')[1]!, 'base64url').toString())
}
