import { isAppId, isClientUrl } from '../apps/app.ts'
import { parseId } from '../ids.ts'
import { notFound } from './not-found.ts'

/** A parameter in a segment of a path, with the text around it: `{key_id}`, `sdk-{version}.tgz`. */
const PARAMETER = /^([^{}]*)\{(\w+)\}([^{}]*)$/

/** The path in the notation of Hono's router: `{key_id}` becomes `:key_id`. */
export function routerPattern(path: string): string {
  return path
    .split('/')
    .map(segment => {
      const [, before, name, after] = PARAMETER.exec(segment) ?? []
      if (name === undefined) return segment
      return before || after ? `:${name}{${escapeDots(before!)}[^/]+${escapeDots(after!)}}` : `:${name}`
    })
    .join('/')
}

/** Whether a segment of a requested path matches one of a template; a parameter is not empty. */
export function segmentMatches(template: string, segment: string): boolean {
  const [, before, name, after] = PARAMETER.exec(template) ?? []
  if (name === undefined) return template === segment
  return (
    segment.length > before!.length + after!.length && segment.startsWith(before!) && segment.endsWith(after!)
  )
}

/**
 * Creates a function that reads the parameters of a path from the segments that the router matched, and throws a
 * KeywayError `not_found` for an invalid one.
 */
export function createParamsReader(
  path: string,
): (segmentOf: (name: string) => string | undefined) => Record<string, string> {
  const parameters = path.split('/').flatMap(segment => {
    const [, before, name, after] = PARAMETER.exec(segment) ?? []
    return name === undefined ? [] : [{ name, start: before!.length, end: after!.length }]
  })
  return segmentOf =>
    Object.fromEntries(
      parameters.map(({ name, start, end }) => {
        const segment = segmentOf(name) ?? ''
        return [name, readParam(name, segment.slice(start, segment.length - end))]
      }),
    )
}

function readParam(name: string, value: string): string {
  const validValue =
    name === 'app_id'
      ? isAppId(value) || isClientUrl(value)
        ? value
        : null
      : name.endsWith('_id')
        ? parseId(value)
        : value
  if (validValue === null) throw notFound()
  return validValue
}

function escapeDots(text: string): string {
  return text.replaceAll('.', '\\.')
}
