/** The entry point of the single executable, in place of packages/server/bin/keyway.js. */
import { setFlagsFromString } from 'node:v8'
import { main } from '../../packages/server/src/cli.ts'

// Keeps V8's young generation small during the start, as bin/light-start.js does.
setFlagsFromString('--semi-space-growth-factor=1')

main(process.argv.slice(isClusterWorker() ? 3 : 2))

/**
 * Whether node:cluster started this process. It passes the path of its script as first argument, so here the arguments
 * begin one place later.
 */
function isClusterWorker(): boolean {
  return process.connected && process.getBuiltinModule('node:cluster').isWorker
}
