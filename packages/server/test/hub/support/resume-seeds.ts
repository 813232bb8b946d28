import { parseArgs } from 'node:util'
import { checkSeeds } from './resume-run.ts'

/*
 * `npm run test:resume` runs random histories of agents, breaks, restarts and faults. From seed 10,001 on senders also
 * move between nodes during partitions, and from 20,001 on messages are addressed to connections, too. `-- --seed 7`
 * repeats one seed, `-- --seeds 500` runs fewer, `-- --first 1000` begins with another one.
 */

const { values } = parseArgs({
  options: { seed: { type: 'string' }, seeds: { type: 'string' }, first: { type: 'string' } },
})
const first = Number(values.seed ?? values.first ?? 1)
const count = values.seed === undefined ? Number(values.seeds ?? 30_000) : 1

const startedAt = performance.now()
let violations = 0
const summary = await checkSeeds(first, count, (seed, error) => {
  violations++
  console.log(`VIOLATION seed ${seed}: ${error.message.split('\n')[0]}`)
})
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
console.log(
  `${count} seeds from ${first}: ${violations} violations; ${summary.received} messages received, ${summary.held} of them held, ${summary.gaps} gaps, ${seconds} s`,
)
process.exit(violations === 0 ? 0 : 1)
