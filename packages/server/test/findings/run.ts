/**
 * `npm run test:findings -- [FOLDER]`: a probe for each hole that was found in an early version attacks the server of
 * this checkout, where the holes must be closed, and that of the checkout in FOLDER (with its `node_modules`), where
 * they should be open. Prints a table; the status is 1 if a hole is open here, or a probe finds nothing there.
 *
 * --only TEXT   only probes whose number and title contain the text, for example `--only "8 metrics"`
 */
import { AssertionError } from 'node:assert'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type EngineName, postgresMissing } from '../support/engines.ts'
import { type Probe, probes, useCheckout } from './checkout.ts'
import './requests.ts'
import './credentials.ts'
import './events.ts'
import './state.ts'

const THIS_CHECKOUT = join(import.meta.dirname, '../../../..')

const { positionals, values } = parseArgs({ allowPositionals: true, options: { only: { type: 'string' } } })
const [earlierCheckout] = positionals
const chosenProbes = probes.filter(({ finding, title }) => `${finding} ${title}`.includes(values.only ?? ''))
console.log(`| Finding | Holds | Engine | ${earlierCheckout ?? '-'} | now |\n|---|---|---|---|---|`)
let isAsExpected = true
for (const probe of chosenProbes)
  for (const engine of probe.engines) {
    if (engine === 'postgres' && postgresMissing()) continue
    const earlierOutcome = earlierCheckout ? await attack(earlierCheckout, probe, engine) : '-'
    const currentOutcome = await attack(THIS_CHECKOUT, probe, engine)
    isAsExpected &&=
      currentOutcome === 'yes' &&
      !earlierOutcome.startsWith('yes') &&
      !earlierOutcome.startsWith('not probed')
    console.log(`| ${probe.finding} | ${probe.title} | ${engine} | ${earlierOutcome} | ${currentOutcome} |`)
  }
process.exit(isAsExpected ? 0 : 1)

/** `yes` if the title holds for the checkout in the folder, or what was seen instead. */
async function attack(folder: string, probe: Probe, engine: EngineName): Promise<string> {
  useCheckout(folder)
  const cleanups: (() => unknown)[] = []
  try {
    await probe.attack(engine, { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) })
    return 'yes'
  } catch (error) {
    const { message } = error as Error
    const observation = message.split('\n')[0]!.replaceAll('|', '/')
    return error instanceof AssertionError ? observation : `not probed: ${observation}`
  } finally {
    for (const cleanup of cleanups) await cleanup()
  }
}
