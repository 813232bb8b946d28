import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** The folder of the package. */
const ROOT = import.meta.dirname
const EXECUTABLE = 'dist/keyway-agent.js'

/**
 * Packs the package as npm installs it. The archive is reproducible, so that `/sdk.tgz` can be cached and compared.
 * Needs no compiler.
 *
 * @param url the instance that serves it, so that its command need not be told
 */
export async function packSdk(url?: string): Promise<Buffer> {
  const files = new Map([
    ['package.json', Buffer.from(await publishedManifest())],
    ['README.md', await readFile(join(ROOT, 'README.md'))],
  ])
  if (url !== undefined) files.set('service.json', Buffer.from(`${JSON.stringify({ url })}\n`))
  for (const path of await builtFiles()) files.set(path, await readFile(join(ROOT, path)))
  const entries = [...files].map(([path, content]) =>
    tarEntry(`package/${path}`, content, path === EXECUTABLE),
  )
  return promisify(gzip)(Buffer.concat([...entries, Buffer.alloc(1024)]), { level: 9 })
}

async function builtFiles(): Promise<string[]> {
  const names = await readdir(join(ROOT, 'dist'), { recursive: true })
  return names
    .filter(name => name.endsWith('.ts') || name.endsWith('.js'))
    .map(name => `dist/${name.replaceAll('\\', '/')}`)
    .sort()
}

/** The published manifest: it refers to `dist`, while the one of the checkout refers to the sources. */
async function publishedManifest(): Promise<string> {
  const { scripts: _, ...manifest } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const published = {
    ...manifest,
    main: './dist/index.js',
    types: './dist/index.d.ts',
    // For compilers without support for "exports" (moduleResolution node10).
    typesVersions: { '*': { protocol: ['./dist/protocol.d.ts'] } },
    exports: {
      '.': { types: './dist/index.d.ts', default: './dist/index.js' },
      './protocol': { types: './dist/protocol.d.ts', default: './dist/protocol.js' },
      './package.json': './package.json',
    },
    bin: { 'keyway-agent': EXECUTABLE },
    files: ['dist'],
  }
  return `${JSON.stringify(published, null, 2)}\n`
}

const BLOCK = 512

/** One file in the ustar format (POSIX.1-1988), without owner and time. */
function tarEntry(path: string, content: Buffer, executable: boolean): Buffer {
  const header = Buffer.alloc(BLOCK)
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long a name for a tar header`)
  header.write(path, 0)
  header.write(executable ? '0000755\0' : '0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${octal(content.length, 11)}\0`, 124)
  header.write(`${octal(0, 11)}\0`, 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${octal(checksum, 6)}\0 `, 148)
  const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)
  return Buffer.concat([header, content, padding])
}

function octal(number: number, digits: number): string {
  return number.toString(8).padStart(digits, '0')
}
