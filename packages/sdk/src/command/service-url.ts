import { readFileSync } from 'node:fs'
import { environment, serviceOrigin } from '../environment.ts'

/**
 * The service that a command is for: the given one, the configured one, the one this package was downloaded from, or
 * that of the last login.
 */
export function serviceUrl(asked: string | undefined, latest: () => string | null): string {
  return serviceOrigin(asked ?? environment('KEYWAY_URL') ?? ownService() ?? latest() ?? undefined)
}

/** An instance writes its public URL into the package that it serves. */
function ownService(): string | undefined {
  try {
    const text = readFileSync(new URL('../../service.json', import.meta.url), 'utf8')
    return (JSON.parse(text) as { url: string }).url
  } catch {
    return undefined
  }
}
