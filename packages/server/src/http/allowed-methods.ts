import { KeywayError } from '../errors.ts'
import type { Route } from './route.ts'

/**
 * Which methods a path answers: `GET, HEAD, POST, OPTIONS` where it is routed, else null. Asked only when routing
 * found nothing, so plain patterns in a row will do.
 */
export function createAllowedMethods(routes: readonly Route[]): (path: string) => string | null {
  const methods = Map.groupBy(routes, route => route.path)
  const patterns = [...methods].map(([path, declared]) => ({
    pattern: toPattern(path),
    allow: allowOf(declared),
  }))
  return path => patterns.find(({ pattern }) => pattern.test(path))?.allow ?? null
}

/** 405 for a path that answers other methods. It goes out with `Allow` (RFC 9110 section 15.5.6). */
export function methodNotAllowed(methods: string): KeywayError {
  return new KeywayError('method_not_allowed', `This path answers ${methods}.`)
}

function toPattern(path: string): RegExp {
  const escaped = path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')
  return new RegExp(`^${escaped}$`)
}

function allowOf(declared: readonly Route[]): string {
  const methods: string[] = declared.map(route => route.method)
  if (methods.includes('GET')) methods.splice(methods.indexOf('GET') + 1, 0, 'HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}
