import { isAppId, isClientUrl } from '../apps/app.ts'
import { parseId } from '../ids.ts'
import { notFound } from './not-found.ts'

/** Validated path parameters. @throws KeywayError `not_found` for invalid ones */
export function readParams(names: readonly string[], given: (name: string) => string | undefined) {
  const params: Record<string, string> = {}
  for (const name of names) {
    const value = given(name) ?? ''
    const known =
      name === 'app_id'
        ? isAppId(value) || isClientUrl(value)
          ? value
          : null
        : name.endsWith('_id')
          ? parseId(value)
          : value
    if (known === null) throw notFound()
    params[name] = known
  }
  return params
}
