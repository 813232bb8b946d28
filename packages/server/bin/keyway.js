#!/usr/bin/env node
// Starts the command line. This is plain JavaScript for Node 14 and newer, since it runs on the machine's own Node. If
// that is too old for the service, it starts the Node that the dependencies include.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REQUIRED_NODE = 24

if (Number(process.versions.node.split('.')[0]) >= REQUIRED_NODE) {
  // A failed import ends the process with its stack and status 1.
  import('./light-start.js').then(() => import('../src/cli.ts')).then(cli => cli.main(process.argv.slice(2)))
} else {
  startWith(bundledNode())
}

function startWith(node) {
  if (!node) {
    console.error(
      `Keyway needs Node ${REQUIRED_NODE} or newer; this is ${process.version}. The dependencies include it: run "npm ci" (npm 12 and newer: without --ignore-scripts).`,
    )
    process.exit(1)
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' })
  child.on('error', error => {
    console.error(`Keyway could not start ${node}: ${error.message}. Run "npm ci" again.`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(signal ? 1 : code))
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal))
}

/** The binary of the `node` dependency, searched upwards from here as Node resolves packages. */
function bundledNode() {
  const name = process.platform === 'win32' ? 'node.exe' : 'node'
  let folder = dirname(fileURLToPath(import.meta.url))
  for (;;) {
    const candidate = join(folder, 'node_modules', 'node', 'bin', name)
    if (existsSync(candidate)) return candidate
    if (dirname(folder) === folder) return null
    folder = dirname(folder)
  }
}
