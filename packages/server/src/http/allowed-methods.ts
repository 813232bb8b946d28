import { KeywayError } from '../errors.ts'
import { segmentMatches } from './path-params.ts'
import type { Route } from './route.ts'

/**
 * Returns a function from a path to its methods, such as `GET, HEAD, POST, OPTIONS`, or null for an unknown path. It
 * compares the path with each template, since it is needed only when routing found no match.
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

/** The 405 of a path with other methods; `allow` becomes the `Allow` header (RFC 9110 section 15.5.6). */
export function methodNotAllowed(methods: string): KeywayError {
  return new KeywayError('method_not_allowed', `This path answers ${methods}.`, { allow: methods })
}

function matches(segments: readonly string[], template: readonly string[]): boolean {
  return (
    segments.length === template.length && template.every((part, at) => segmentMatches(part, segments[at]!))
  )
}

function allowOf(declared: readonly Route[]): string {
  const methods: string[] = declared.map(route => route.method)
  if (methods.includes('GET')) methods.splice(methods.indexOf('GET') + 1, 0, 'HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}
