import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/**
 * Compiles `src` into `dist` with `tsc`. `dist` is committed, since instances serve the package from checkouts without
 * a compiler; a test fails when it is stale.
 */
export function buildSdk(outDir: string = join(import.meta.dirname, 'dist')): void {
  rmSync(outDir, { recursive: true, force: true })
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const project = join(import.meta.dirname, 'tsconfig.build.json')
  execFileSync(process.execPath, [tsc, '-p', project, '--outDir', outDir], { stdio: 'inherit' })
  for (const file of readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.d.ts')) pointToJavaScript(join(outDir, file))
  }
}

/** Rewrites `./x.ts` to `./x.js` in declarations; the compiler does so in code only. */
function pointToJavaScript(path: string): void {
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, text.replaceAll(/((?:from |import\()'\.{1,2}\/[^']*)\.ts'/g, "$1.js'"))
}

if (import.meta.main) buildSdk()
