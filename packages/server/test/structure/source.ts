import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../../..', import.meta.url))
export const src = join(root, 'packages/server/src')

export interface SourceFile {
  path: string
  text: string
}

export function sourceFiles(): Promise<SourceFile[]> {
  return filesOf(src, '**/*.ts')
}

export async function filesOf(folder: string, pattern: string): Promise<SourceFile[]> {
  const files: SourceFile[] = []
  for await (const name of glob(pattern, { cwd: folder, exclude: entry => entry.includes('node_modules') })) {
    const path = join(folder, name)
    files.push({ path, text: await readFile(path, 'utf8') })
  }
  return files
}
