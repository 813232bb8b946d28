import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { requireTool } from '../install.ts'

/*
 * Bundles the service into one CommonJS file, as a single executable needs it. Code that loads files relative to its
 * own place in the checkout is rewritten here; if any remains, the build fails.
 */

export const ROOT = join(import.meta.dirname, '../..')
const SERVER = join(ROOT, 'packages/server/src')
/** The only module of the service that may keep `import.meta`, since in the executable it reads embedded files. */
const OWN_FILES_MODULE = join(SERVER, 'own-files.ts')
const ADDON_LOADER = join(ROOT, 'node_modules/sodium-native/binding.js')
/** Optional parts of dependencies, which are not installed. */
const EXTERNAL_MODULES = ['pg-native']

interface Plugin {
  name: string
  load?(id: string): string | undefined
  transform?(code: string, id: string): Promise<string | undefined>
}

interface Bundler {
  rolldown(options: {
    cwd: string
    input: string
    platform: 'node'
    external: string[]
    plugins: Plugin[]
    onwarn(warning: { code?: string; message: string }): void
  }): Promise<{
    generate(options: {
      format: 'cjs' | 'esm'
      codeSplitting: false
      comments: boolean
    }): Promise<{ output: { code: string }[] }>
  }>
}

/** Bundles a module with its imports. @throws Error if a module cannot be bundled */
export async function bundle(input: string, format: 'cjs' | 'esm'): Promise<string> {
  const tool = await requireTool('rolldown')
  const { rolldown }: Bundler = await import(join(tool, 'dist/index.mjs'))
  const build = await rolldown({
    cwd: ROOT,
    input,
    platform: 'node',
    external: EXTERNAL_MODULES,
    plugins: [rewritePaths],
    onwarn(warning) {
      throw new Error(warning.message)
    },
  })
  // Not minified, since logs contain the names of errors, and stack traces those of functions.
  const { output } = await build.generate({ format, codeSplitting: false, comments: false })
  return escapeNonAscii(withBuiltInsOnly(output[0]!.code))
}

/** `createRequire` fails on a thread's data URL. Any path will do, since all modules but built-in ones are bundled. */
function withBuiltInsOnly(code: string): string {
  return code.replaceAll('createRequire(import.meta.url)', "createRequire('/')")
}

const rewritePaths: Plugin = {
  name: 'place-independent',
  load: id =>
    id === ADDON_LOADER ? readFileSync(join(import.meta.dirname, 'embedded-addon.js'), 'utf8') : undefined,
  async transform(code, id) {
    if (!id.startsWith(SERVER) || id === OWN_FILES_MODULE) return undefined
    const bundledCode = await withBundledThreads(withBundledRequires(code), id)
    if (bundledCode.includes('import.meta.'))
      throw new Error(
        `${id} uses import.meta, which is another place in the single executable: see own-files.ts`,
      )
    return bundledCode
  },
}

function withBundledRequires(code: string): string {
  return code.replaceAll('createRequire(import.meta.url)(', 'require(')
}

/** Replaces the URL of each thread's module by one that contains the module. */
async function withBundledThreads(code: string, id: string): Promise<string> {
  const pattern = /(?<=new Worker\(new URL\()'([^']+)', import\.meta\.url(?=\))/
  const [match, module] = pattern.exec(code) ?? []
  if (!match) return code
  const content = await bundle(resolve(dirname(id), module!), 'esm')
  return code.replace(match, () => `'data:text/javascript;base64,${Buffer.from(content).toString('base64')}'`)
}

/**
 * Escapes characters that are not ASCII, since V8 stores ASCII text in half the memory. Only literals contain such
 * characters, so escapes do not change the code.
 */
function escapeNonAscii(code: string): string {
  return code.replaceAll(
    /[^\0-\x7f]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
