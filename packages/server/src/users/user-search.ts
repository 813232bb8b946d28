import type { UserSearch } from './user-store.ts'

/** What a typed text searches: a key prefix, a domain with its `@`, otherwise the beginning of an address. */
export function searchOf(query: string | undefined): UserSearch['by'] {
  const text = query?.trim() ?? ''
  if (text === '') return undefined
  if (text.startsWith('svc_')) return { keyPrefixBeginning: text.slice(0, 12) }
  return text.startsWith('@')
    ? { domainBeginning: text.toLowerCase() }
    : { addressBeginning: text.toLowerCase() }
}
