import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../structure/source.ts'

/** Where Debian's packages install Go libraries. */
export const GO_LIBRARIES = '/usr/share/gocode'
/** Kept between runs, since compiling Go's standard library takes half a minute. */
const CACHE = join(root, 'node_modules/.cache/keyway-go')

/** Runs the Go tool with Debian's libraries, without the network. */
export async function runGo(args: string[], cwd: string): Promise<void> {
  const goEnvironment = { GO111MODULE: 'off', GOPATH: GO_LIBRARIES, GOCACHE: CACHE, CGO_ENABLED: '0' }
  await promisify(execFile)('go', args, { cwd, env: { ...process.env, ...goEnvironment } })
}
