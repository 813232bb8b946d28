import type { UserSearch } from './user-store.ts'

/**
 * The search for a typed text: a key prefix, a domain with its `@`, or otherwise the beginning of an address; undefined
 * for none, which lists everybody.
 */
export function searchOf(query: string | undefined): UserSearch['by'] {
  const text = query?.trim() ?? ''
  if (text === '') return undefined
  if (text.startsWith('svc_')) return { keyPrefixBeginning: text.slice(0, 12) }
  return text.startsWith('@')
    ? { domainBeginning: text.toLowerCase() }
    : { addressBeginning: text.toLowerCase() }
}
