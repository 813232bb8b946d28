/**
 * `npm run test:findings -- [FOLDER]`: attacks the server of this checkout with a probe for each hole that an attack on
 * an early version found, and that of the checkout in FOLDER, with its `node_modules`, where the holes should be open.
 * Prints a table; status 1 if a hole is open here, or a probe finds nothing there.
 *
 *   --only TEXT   only probes whose number and title contain the text, for example `--only "8 metrics"`
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

const HERE = join(import.meta.dirname, '../../../..')

const { positionals, values } = parseArgs({ allowPositionals: true, options: { only: { type: 'string' } } })
const [earlier] = positionals
const chosen = probes.filter(({ finding, title }) => `${finding} ${title}`.includes(values.only ?? ''))
console.log(`| Finding | Holds | Engine | ${earlier ?? '-'} | now |\n|---|---|---|---|---|`)
let isAsExpected = true
for (const probe of chosen)
  for (const engine of probe.engines) {
    if (engine === 'postgres' && postgresMissing()) continue
    const before = earlier ? await attack(earlier, probe, engine) : '-'
    const now = await attack(HERE, probe, engine)
    isAsExpected &&= now === 'yes' && !before.startsWith('yes') && !before.startsWith('not probed')
    console.log(`| ${probe.finding} | ${probe.title} | ${engine} | ${before} | ${now} |`)
  }
process.exit(isAsExpected ? 0 : 1)

/** `yes` if the title holds there, or what was seen instead. */
async function attack(folder: string, probe: Probe, engine: EngineName): Promise<string> {
  useCheckout(folder)
  const cleanups: (() => unknown)[] = []
  try {
    await probe.attack(engine, { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) })
    return 'yes'
  } catch (error) {
    const { message } = error as Error
    const said = message.split('\n')[0]!.replaceAll('|', '/')
    return error instanceof AssertionError ? said : `not probed: ${said}`
  } finally {
    for (const cleanup of cleanups) await cleanup()
  }
}
