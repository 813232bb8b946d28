import { parseArgs } from 'node:util'
import { endingChecks } from './conformance/ending-checks.ts'
import { frameChecks } from './conformance/frame-checks.ts'
import { handshakeChecks } from './conformance/handshake-checks.ts'
import { type Check, HubUnderTest } from './conformance/hub-under-test.ts'
import { resumeChecks } from './conformance/resume-checks.ts'

/*
 * Checks any hub against docs/hub-protocol.md, from outside:
 *
 *     npm run conformance -- --url http://localhost:8080 --key svc_… [--access-token eyJ…] [--slow]
 */

export interface ConformanceOptions {
  url: string
  /** An API key (`svc_…`) with the scopes agent:connect and agents:send, or one that is not restricted to scopes. */
  key: string
  /** Access token of the key's owner, to also check revocation and expiry with keys created for that. */
  accessToken?: string
  slow?: boolean
  /** How long a check may take, in milliseconds. Slow checks have 70 s in any case. */
  deadlineMs?: number
}

export interface CheckResult {
  check: Check
  outcome: 'ok' | 'failed' | 'skipped'
  why?: string
}

const DEADLINE_MS = 15_000
const SLOW_DEADLINE_MS = 70_000

/** Runs the checks one after the other; calls `report` after each. */
export async function runConformance(
  options: ConformanceOptions,
  report: (result: CheckResult) => void = () => {},
): Promise<CheckResult[]> {
  const hub = new HubUnderTest(options.url, options.key, options.accessToken)
  const results: CheckResult[] = []
  for (const check of [...handshakeChecks, ...frameChecks, ...resumeChecks, ...endingChecks]) {
    const result = await runCheck(check, hub, options)
    results.push(result)
    report(result)
  }
  return results
}

async function runCheck(check: Check, hub: HubUnderTest, options: ConformanceOptions): Promise<CheckResult> {
  if (check.slow && !options.slow) return { check, outcome: 'skipped', why: 'needs --slow' }
  if (check.needsOwner && !options.accessToken)
    return { check, outcome: 'skipped', why: 'needs --access-token' }
  const deadlineSignal = AbortSignal.timeout(
    check.slow ? SLOW_DEADLINE_MS : (options.deadlineMs ?? DEADLINE_MS),
  )
  const timedOut = new Promise<never>((_, reject) =>
    deadlineSignal.addEventListener('abort', () => reject(new Error('no answer in time'))),
  )
  try {
    await Promise.race([check.run(hub), timedOut])
    return { check, outcome: 'ok' }
  } catch (error) {
    return { check, outcome: 'failed', why: (error as Error).message }
  } finally {
    await hub.clear()
  }
}

function line({ check, outcome, why }: CheckResult): string {
  const reason = why ? `\n          ${why.trim().replaceAll('\n', '\n          ')}` : ''
  return `${outcome.padEnd(8)}  §${check.section} ${check.promise}${reason}`
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      key: { type: 'string' },
      'access-token': { type: 'string' },
      slow: { type: 'boolean' },
    },
  })
  const { url, key, slow, 'access-token': accessToken } = values
  if (!url || !key) {
    console.error('Usage: npm run conformance -- --url <origin> --key svc_… [--access-token eyJ…] [--slow]')
    process.exitCode = 64
    return
  }
  const results = await runConformance({ url, key, accessToken, slow }, result => console.log(line(result)))
  const count = (wanted: string) => results.filter(({ outcome }) => outcome === wanted).length
  console.log(`${count('ok')} ok, ${count('failed')} failed, ${count('skipped')} skipped`)
  process.exitCode = count('failed') > 0 ? 1 : 0
}

if (import.meta.main) await main()
