import { readFileSync } from 'node:fs'
import { getAssetKeys, getRawAsset, isSea } from 'node:sea'

const ROOT = new URL('../../../', import.meta.url)

/** Reads a file of the project by its path below the root: from the checkout, or from the single executable. */
export function readOwnFile(path: string): Buffer {
  return isSea() ? readEmbedded(path) : readFileSync(new URL(path, ROOT))
}

/** The files that the single executable has below this folder, by their path in it; undefined in a checkout. */
export function embeddedFiles(folder: string): ReadonlyMap<string, Buffer> | undefined {
  if (!isSea()) return undefined
  const names = getAssetKeys()
    .filter(name => name.startsWith(`${folder}/`))
    .sort()
  return new Map(names.map(name => [name.slice(folder.length + 1), readEmbedded(name)]))
}

/** Does not copy the bytes, which are a part of the executable in memory: they must not be written to. */
function readEmbedded(name: string): Buffer {
  return Buffer.from(getRawAsset(name) as ArrayBuffer)
}
