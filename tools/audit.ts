/**
 * Compares what is shipped with the registry's list of known weaknesses. High and critical ones fail; a registry
 * that gives no such list (offline, a mirror) is said and passes, since that tells nothing of the packages.
 */
import { spawnSync } from 'node:child_process'

const PATIENCE_MS = 60_000

interface Report {
  vulnerabilities?: Record<string, { severity: string; via: unknown[] }>
}

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  encoding: 'utf8',
  timeout: PATIENCE_MS,
})
const report = parse(stdout)
if (!report?.vulnerabilities) {
  console.log('Not audited: the registry gives no list of known weaknesses here.')
} else {
  const found = Object.entries(report.vulnerabilities)
  for (const [name, { severity }] of found) console.log(`${severity}: ${name}`)
  const grave = found.filter(([, { severity }]) => severity === 'high' || severity === 'critical')
  console.log(`Audited: ${found.length} known weaknesses, ${grave.length} of them grave.`)
  process.exitCode = grave.length > 0 ? 1 : 0
}

function parse(text: string): Report | null {
  try {
    return JSON.parse(text) as Report
  } catch {
    return null
  }
}
