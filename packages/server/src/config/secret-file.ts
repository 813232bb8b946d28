import { readFileSync } from 'node:fs'
import { Mistake } from './mistakes.ts'

/**
 * The content of the file that `NAME_FILE` names, for secret settings; undefined if `NAME_FILE` is not set or empty.
 *
 * @param value the value of `NAME` itself; setting both is a mistake
 * @throws Mistake
 */
export function readSecretFile(
  name: string,
  value: string | undefined,
  environment: NodeJS.ProcessEnv,
): string | undefined {
  const file = environment[`${name}_FILE`]?.trim()
  if (!file) return undefined
  if (value) throw new Mistake(`is set, and ${name}_FILE too: keep one of them`)
  const text = read(name, file)
  if (text) return text
  throw new Mistake(`is empty: ${name}_FILE names ${JSON.stringify(file)}, which is an empty file`)
}

function read(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new Mistake(`cannot be read: ${name}_FILE names ${JSON.stringify(file)} (${code})`)
  }
}
