import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../structure/source.ts'

/** Debian's libraries, as packages put them there. */
export const GO_LIBRARIES = '/usr/share/gocode'
/** Kept between runs: to compile Go's own library takes half a minute. */
const CACHE = join(root, 'node_modules/.cache/keyway-go')

/** Runs the Go tool with Debian's libraries, without the network. */
export async function go(words: string[], cwd: string): Promise<void> {
  const own = { GO111MODULE: 'off', GOPATH: GO_LIBRARIES, GOCACHE: CACHE, CGO_ENABLED: '0' }
  await promisify(execFile)('go', words, { cwd, env: { ...process.env, ...own } })
}
