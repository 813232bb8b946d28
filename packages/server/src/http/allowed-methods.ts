import { KeywayError } from '../errors.ts'
import { segmentMatches } from './path-params.ts'
import type { Route } from './route.ts'

/**
 * Returns a function from a path to its methods, such as `GET, HEAD, POST, OPTIONS`, or null for an unknown path. The
 * function compares the path with one path template after the other. This may be slow, since it is called only when no
 * route matched.
 */
export function createAllowedMethods(routes: readonly Route[]): (path: string) => string | null {
  const routesByPath = Map.groupBy(routes, route => route.path)
  const templates = [...routesByPath].map(([path, pathRoutes]) => ({
    segments: path.split('/'),
    allow: allowOf(pathRoutes),
  }))
  return path => {
    const segments = path.split('/')
    return templates.find(template => matches(segments, template.segments))?.allow ?? null
  }
}

/**
 * The error (405) for a method that a path does not have; `methods` becomes the `Allow` header (RFC 9110 section
 * 15.5.6).
 */
export function methodNotAllowed(methods: string): KeywayError {
  return new KeywayError('method_not_allowed', `This path answers ${methods}.`, { allow: methods })
}

function matches(segments: readonly string[], template: readonly string[]): boolean {
  return (
    segments.length === template.length && template.every((part, at) => segmentMatches(part, segments[at]!))
  )
}

function allowOf(pathRoutes: readonly Route[]): string {
  const methods: string[] = pathRoutes.map(route => route.method)
  if (methods.includes('GET')) methods.splice(methods.indexOf('GET') + 1, 0, 'HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}
