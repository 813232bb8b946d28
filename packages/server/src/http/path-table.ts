import type { Route } from './route.ts'

/** First segments that are the API's alone: what is unknown below them never reaches the pages. */
const API_SEGMENTS = new Set([
  'v1',
  'auth',
  '.well-known',
  'errors',
  'hub',
  'livez',
  'readyz',
  'openapi.json',
  'metrics',
  'sdk.tgz',
  'hooks',
  'docs',
])

export interface PathTable {
  /** `GET, HEAD, POST, OPTIONS` for a path that is routed, else null. */
  methodsOf(path: string): string | null
  isApiPath(path: string): boolean
}

/** Which methods a path answers. Asked only when routing found nothing, so plain patterns in a row will do. */
export function createPathTable(routes: readonly Route[]): PathTable {
  const methods = Map.groupBy(routes, route => route.path)
  const patterns = [...methods].map(([path, declared]) => ({
    pattern: toPattern(path),
    allow: allowOf(declared),
  }))
  return {
    methodsOf(path) {
      return patterns.find(({ pattern }) => pattern.test(path))?.allow ?? null
    },
    isApiPath(path) {
      return API_SEGMENTS.has(path.split('/')[1] ?? '')
    },
  }
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
