import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs benchmarks one after the other; each can also be run alone. Passes `--quick` on. verifications.ts, which installs
 * packages, against.ts, which needs an earlier checkout, and soak.ts, which takes half an hour, are run alone.
 */
const PROGRAMS = [
  'start',
  'breakdown',
  'exchange',
  'threads',
  'introspect',
  'limited',
  'oauth',
  'cores',
  'sign-in',
  'hub',
  'between-nodes',
  'growth',
  'rows',
  'lists',
  'administration',
  'hostile',
]

const failedPrograms = PROGRAMS.filter(name => {
  console.log(`\n# ${name}`)
  const program = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
  return spawnSync(process.execPath, [program, ...process.argv.slice(2)], { stdio: 'inherit' }).status !== 0
})
if (failedPrograms.length > 0) {
  console.error(`\nThese did not run to their end: ${failedPrograms.join(', ')}`)
  process.exitCode = 1
}
