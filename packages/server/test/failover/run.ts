import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { asynchronousFailover } from './asynchronous.ts'
import { missingPackages } from './machine.ts'
import { synchronousFailovers } from './synchronous.ts'

/*
 * `npm run test:failover` kills the primary of the cluster of docs/operations.md, "High availability", ten times under
 * load, and checks that nothing that was acknowledged is lost. Then it kills the primary once while an asynchronous
 * standby is cut off, and checks what is lost and what the journal restores. `-- --kills 3` kills three times, not ten;
 * `-- --only asynchronous` runs only the second part.
 */

const { values } = parseArgs({
  options: { kills: { type: 'string' }, only: { type: 'string' }, seed: { type: 'string' } },
})
const seed = Number(values.seed ?? randomInt(2 ** 31))
const kills = Number(values.kills ?? 10)

const missingDebianPackages = missingPackages()
if (missingDebianPackages.length > 0) {
  console.error(
    `Nothing was tested. Install Debian's packages first: apt-get install ${missingDebianPackages.join(' ')}`,
  )
  process.exit(1)
}
// A signal would end this process without an `exit` event, whose listener kills the cluster.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
process.exit(await runAll())

async function runAll(): Promise<number> {
  const violations: string[] = []
  if (values.only !== 'asynchronous') violations.push(...(await synchronousFailovers(seed, kills)))
  if (values.only !== 'synchronous') violations.push(...(await asynchronousFailover(seed)))
  for (const violation of violations) console.log(`VIOLATION ${violation}`)
  console.log(`\nseed ${seed}: ${violations.length} violations`)
  return violations.length === 0 ? 0 : 1
}
