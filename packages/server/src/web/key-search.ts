import { type ApiKey, type ApiKeyStatus, statusOf } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import { decodeCursor, encodeCursor, type Position } from '../paging.ts'
import type { PageContext, PageKit } from './kit.ts'

/** Number of keys per page, so that a page is smaller than 60 KB. */
export const KEYS_PER_PAGE = 20
/**
 * Maximum number of keys, the newest ones, that are read for a search or for a sort order other than by creation. It
 * bounds the cost of a page. For the few people with more keys, a link leads to older ones.
 */
export const MAX_SEARCHED_KEYS = 1000
const MAX_QUERY_LENGTH = 100

export const KEY_SORTS = ['created', 'name', 'used', 'expires'] as const
export type KeySort = (typeof KEY_SORTS)[number]

/** What a page of /keys shows: filters, order and position. */
export interface KeyView {
  status: ApiKeyStatus | null
  query: string
  sort: KeySort
  /** Only keys that were created before this position are listed or searched; null for no such limit. */
  after: Position | null
  /** The number of the page, from 1. */
  page: number
}

export interface FoundKeys {
  rows: ApiKey[]
  /** Number of matches among the searched keys; null for a list by creation without a search. */
  matchCount: number | null
  /** The next and the previous page, or null. In a list by creation without a search, `previous` is the first page. */
  next: KeyView | null
  previous: KeyView | null
  /** The view of keys older than those that were searched; null if there are none. */
  older: KeyView | null
}

/** Reads the view from the query of a request; unknown values are ignored. */
export function readView(c: PageContext): KeyView {
  const status = c.req.query('status')
  const page = Number(c.req.query('page') ?? 1)
  return {
    status: status === 'active' || status === 'expired' || status === 'revoked' ? status : null,
    query: (c.req.query('query') ?? '')
      .replace(/\p{Cc}/gu, ' ')
      .trim()
      .slice(0, MAX_QUERY_LENGTH),
    sort: KEY_SORTS.find(each => each === c.req.query('sort')) ?? 'created',
    after: decodeCursor(c.req.query('cursor') ?? ''),
    page: Number.isSafeInteger(page) && page >= 1 && page <= MAX_SEARCHED_KEYS ? page : 1,
  }
}

export function pathOf({ status, query, sort, after, page }: KeyView): string {
  const parameters = new URLSearchParams({
    ...(status && { status }),
    ...(query && { query }),
    ...(sort !== 'created' && { sort }),
    ...(after && { cursor: encodeCursor(after) }),
    ...(page > 1 && { page: String(page) }),
  }).toString()
  return parameters ? `/keys?${parameters}` : '/keys'
}

export async function findKeys(kit: PageKit, userId: string, view: KeyView): Promise<FoundKeys> {
  const { status, query, sort, after, page } = view
  if (query === '' && sort === 'created') {
    const { rows, next } = await kit.apiKeys.list(userId, status, { limit: KEYS_PER_PAGE, after })
    const firstPage = after ? { ...view, after: null, page: 1 } : null
    const nextPage = next && { ...view, after: next, page: (after ? page : 1) + 1 }
    return { rows, matchCount: null, next: nextPage, previous: firstPage, older: null }
  }
  const { rows, next } = await kit.apiKeys.list(userId, status, { limit: MAX_SEARCHED_KEYS, after })
  const matches = sortKeys(
    rows.filter(key => contains(key, query.toLowerCase())),
    sort,
    kit.clock.now(),
  )
  const start = (page - 1) * KEYS_PER_PAGE
  return {
    rows: matches.slice(start, start + KEYS_PER_PAGE),
    matchCount: matches.length,
    next: matches.length > start + KEYS_PER_PAGE ? { ...view, page: page + 1 } : null,
    previous: page > 1 ? { ...view, page: page - 1 } : null,
    older: next && { ...view, after: next, page: 1 },
  }
}

/** @param searchText the text to search for, in lower case */
function contains({ id, name, keyPrefix, appId, externalId }: ApiKey, searchText: string): boolean {
  if (searchText === '') return true
  const prefix = keyPrefix.toLowerCase()
  return (
    // A pasted key is found by its prefix; the key itself is not compared.
    searchText.startsWith(prefix) ||
    [id, prefix, name, appId, externalId].some(text => text?.toLowerCase().includes(searchText))
  )
}

/** Sorts by the same rules in every language. Keys that compare as equal stay newest first. */
function sortKeys(keys: ApiKey[], sort: KeySort, now: Instant): ApiKey[] {
  const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })
  const noExpiry = Number.POSITIVE_INFINITY
  const expiry = (key: ApiKey) => (statusOf(key, now) === 'active' ? (key.expiresAt ?? noExpiry) : noExpiry)
  switch (sort) {
    case 'created':
      return keys
    case 'name':
      // Keys without a name come last.
      return keys.toSorted((a, b) =>
        a.name === null || b.name === null
          ? Number(a.name === null) - Number(b.name === null)
          : collator.compare(a.name, b.name),
      )
    case 'used':
      return keys.toSorted((a, b) => (b.lastUsedAt ?? 0) - (a.lastUsedAt ?? 0))
    case 'expires':
      return keys.toSorted((a, b) => compare(expiry(a), expiry(b)))
  }
}

/** Compares two numbers. Infinity equals itself, whereas a difference would be NaN. */
function compare(left: number, right: number): number {
  return left === right ? 0 : left < right ? -1 : 1
}
