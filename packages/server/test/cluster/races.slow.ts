import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { openPair, raceLimits, raceRevocations, raceSignUps } from './races.ts'

/** The races of two-nodes.test.ts, with many more rounds. */
describe('two nodes on one PostgreSQL, at length', { skip: postgresMissing() }, () => {
  test('an exchange that starts after a revocation was answered fails on both nodes, in 1000 races', async t => {
    const { origins, links } = await openPair(t)
    await raceRevocations(origins, links, 1000)
  })

  test('a limit is exact over two nodes, in 500 races of ten', async t => {
    const { origins } = await openPair(t, { KEYWAY_MAGIC_LINK_LIMITS: '3/minute' })
    await raceLimits(origins, 500)
  })

  test('five links of a new address used at once on two nodes create one account, in 300 races', async t => {
    await raceSignUps(await openPair(t), 300)
  })
})
