/**
 * Checks the shipped packages against the registry's security advisories, and fails if an advisory is high or critical.
 * If the registry cannot be reached, or is a mirror without advisories, it says so and succeeds.
 */
import { spawnSync } from 'node:child_process'

const AUDIT_TIMEOUT_MS = 60_000

interface Report {
  vulnerabilities?: Record<string, { severity: string; via: unknown[] }>
}

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  encoding: 'utf8',
  timeout: AUDIT_TIMEOUT_MS,
})
const report = parse(stdout)
if (!report?.vulnerabilities) {
  console.log('Not audited: the registry gives no list of known weaknesses here.')
} else {
  const vulnerabilities = Object.entries(report.vulnerabilities)
  for (const [name, { severity }] of vulnerabilities) console.log(`${severity}: ${name}`)
  const severeVulnerabilities = vulnerabilities.filter(
    ([, { severity }]) => severity === 'high' || severity === 'critical',
  )
  console.log(
    `Audited: ${vulnerabilities.length} known weaknesses, ${severeVulnerabilities.length} of them grave.`,
  )
  process.exitCode = severeVulnerabilities.length > 0 ? 1 : 0
}

function parse(text: string): Report | null {
  try {
    return JSON.parse(text) as Report
  } catch {
    return null
  }
}
