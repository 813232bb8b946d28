import type { IncomingMessage } from 'node:http'

/** Whether the Accept header names HTML, as that of a browser does when it opens a page. */
export function wantsPage({ headers }: IncomingMessage): boolean {
  return headers.accept?.includes('text/html') ?? false
}

/** Whether the client names this media type and does not prefer JSON to it (RFC 9110 section 12.5.1). */
export function prefers({ headers }: IncomingMessage, type: string): boolean {
  const weight = quality(headers.accept, type)
  return weight > 0 && weight >= quality(headers.accept, 'application/json')
}

/**
 * The quality value of a media type; 0 if the header does not name the type, names it as not acceptable, or gives it an
 * invalid value.
 */
function quality(accept: string | undefined, type: string): number {
  for (const range of accept?.toLowerCase().split(',') ?? []) {
    const [name, ...parameters] = range.split(';').map(part => part.trim())
    if (name !== type) continue
    const weight = Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
    return weight >= 0 && weight <= 1 ? weight : 0
  }
  return 0
}
