import { availableParallelism } from 'node:os'
import { type ClientCheck, NotSupported } from './client-conformance/check.ts'
import { endingChecks } from './client-conformance/ending-checks.ts'
import { movingChecks } from './client-conformance/moving-checks.ts'
import { Program } from './client-conformance/program.ts'
import { ScriptedHub } from './client-conformance/scripted-hub.ts'
import { timeChecks } from './client-conformance/time-checks.ts'

/*
 * Checks any client of the hub against docs/hub-protocol.md, with a hub that follows a script:
 *
 *     npm run conformance:client -- COMMAND [WORDS…]
 *
 * The command reads KEYWAY_URL and KEYWAY_API_KEY, connects, and answers each message to its sender with
 * {"echo": <data>}. After a permanent refusal or close it exits by itself, with a status that is not 0.
 */

export interface ClientCheckResult {
  check: ClientCheck
  outcome: 'ok' | 'failed' | 'not supported'
  why?: string
}

/** Number of concurrent checks: more than cores, since they mostly wait. */
const CONCURRENCY = 4 * availableParallelism()

export const CLIENT_CHECKS = [...timeChecks, ...endingChecks, ...movingChecks]

/** Runs each check with a hub and a process of its own; calls `report` with each result, in the order of `checks`. */
export async function runClientConformance(
  command: [string, ...string[]],
  {
    checks = CLIENT_CHECKS,
    report = () => {},
  }: { checks?: ClientCheck[]; report?: (result: ClientCheckResult) => void } = {},
): Promise<ClientCheckResult[]> {
  const results: Promise<ClientCheckResult>[] = []
  const slots = Array.from({ length: CONCURRENCY }, () => Promise.resolve())
  for (const [index, check] of checks.entries()) {
    const whenSlotFree = slots[index % CONCURRENCY]!
    const result = whenSlotFree.then(() => runCheck(check, command))
    slots[index % CONCURRENCY] = result.then(() => {})
    results.push(result)
  }
  for (const result of results) report(await result)
  return Promise.all(results)
}

async function runCheck(check: ClientCheck, command: [string, ...string[]]): Promise<ClientCheckResult> {
  const hub = new ScriptedHub()
  await hub.start()
  check.prepare?.(hub)
  const program = new Program(command, { KEYWAY_URL: hub.url, KEYWAY_API_KEY: hub.apiKey })
  try {
    await Promise.race([hub.violation, check.run({ hub, program })])
    return { check, outcome: 'ok' }
  } catch (error) {
    const why = (error as Error).message
    if (error instanceof NotSupported) return { check, outcome: 'not supported', why }
    const clientOutput = program.output.trim()
    return {
      check,
      outcome: 'failed',
      why: clientOutput ? `${why}\nThe client printed:\n${clientOutput}` : why,
    }
  } finally {
    await program.kill()
    await hub.stop()
  }
}

function line({ check, outcome, why }: ClientCheckResult): string {
  const reason = why ? `\n               ${why.trim().replaceAll('\n', '\n               ')}` : ''
  return `${outcome.padEnd(13)}  §${check.section} ${check.promise}${reason}`
}

async function main(): Promise<void> {
  const [command, ...words] = process.argv.slice(2)
  if (!command) {
    console.error('Usage: npm run conformance:client -- COMMAND [WORDS…]')
    process.exitCode = 64
    return
  }
  const results = await runClientConformance([command, ...words], {
    report: result => console.log(line(result)),
  })
  const count = (wanted: string) => results.filter(({ outcome }) => outcome === wanted).length
  console.log(`${count('ok')} ok, ${count('failed')} failed, ${count('not supported')} not supported`)
  process.exitCode = count('failed') > 0 ? 1 : 0
}

if (import.meta.main) await main()
