import { KeywayError } from '../errors.ts'
import type { Route } from './route.ts'

/**
 * Which methods a path answers: `GET, HEAD, POST, OPTIONS` where it is routed, else null. Asked only when routing
 * found nothing, so a comparison with each template will do.
 */
export function createAllowedMethods(routes: readonly Route[]): (path: string) => string | null {
  const methods = Map.groupBy(routes, route => route.path)
  const templates = [...methods].map(([path, declared]) => ({
    segments: path.split('/'),
    allow: allowOf(declared),
  }))
  return path => {
    const segments = path.split('/')
    return templates.find(template => matches(segments, template.segments))?.allow ?? null
  }
}

/** 405 for a path that answers other methods. The answer has `Allow` (RFC 9110 section 15.5.6). */
export function methodNotAllowed(methods: string): KeywayError {
  return new KeywayError('method_not_allowed', `This path answers ${methods}.`, { allow: methods })
}

/** A parameter (`{key_id}`) is a whole segment, and any text but none is a value of it. */
function matches(segments: readonly string[], template: readonly string[]): boolean {
  return (
    segments.length === template.length &&
    template.every((part, at) => (part.startsWith('{') ? segments[at] !== '' : segments[at] === part))
  )
}

function allowOf(declared: readonly Route[]): string {
  const methods: string[] = declared.map(route => route.method)
  if (methods.includes('GET')) methods.splice(methods.indexOf('GET') + 1, 0, 'HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}
