/** The start of the single executable, instead of packages/server/bin/keyway.js. */
import { setFlagsFromString } from 'node:v8'
import { main } from '../../packages/server/src/cli.ts'

// As in bin/light-start.js.
setFlagsFromString('--semi-space-growth-factor=1')

main(process.argv.slice(isOneOfSeveral() ? 3 : 2))

/** node:cluster starts a process with the name of its script first, which here is one more name of the executable. */
function isOneOfSeveral(): boolean {
  return process.connected && process.getBuiltinModule('node:cluster').isWorker
}
