import type { Json } from '@keyway/sdk/protocol'
import type { Instant } from '../clock.ts'
import type { Slice } from '../paging.ts'

/** Data that the owner's app attaches to a key. Keyway does not interpret it. */
export type Metadata = { [name: string]: Json }

/** Maximum size of metadata as stored: JSON without white space, in UTF-8. */
export const MAX_METADATA_BYTES = 16 * 1024
/** Maximum levels of nesting, including the object itself. */
export const MAX_METADATA_DEPTH = 32
/** Maximum code points of an external id. */
export const MAX_EXTERNAL_ID_LENGTH = 128
/** Maximum size of all metadata in one page of a list, since 100 keys could have 1.6 MiB. */
export const MAX_PAGE_METADATA_BYTES = 256 * 1024

/** The stored form, whose size is limited by `MAX_METADATA_BYTES`; null if there is none or it is an empty object. */
export function storedForm(metadata: Metadata | null): string | null {
  return metadata === null || Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata)
}

export function bytesOf(stored: string | null): number | null {
  return stored === null ? null : Buffer.byteLength(stored)
}

/**
 * Why this value is refused as metadata: it is too long, too deeply nested, or could not be returned unchanged. Null if
 * it is accepted.
 */
export function metadataProblem(value: Metadata): string | null {
  const problem = problemOfMembers(value)
  if (problem) return problem
  const bytes = Buffer.byteLength(JSON.stringify(value))
  return bytes > MAX_METADATA_BYTES
    ? `must have at most ${MAX_METADATA_BYTES} bytes as JSON in UTF-8; this has ${bytes}`
    : null
}

/**
 * Shortens a page so that all metadata of its keys have at most `MAX_PAGE_METADATA_BYTES`. The page always
 * keeps its first key.
 */
export function withinPageBytes<Key extends { id: string; createdAt: Instant; metadataBytes: number | null }>(
  slice: Slice<Key>,
): Slice<Key> {
  let bytes = 0
  const cutIndex = slice.rows.findIndex(({ metadataBytes }) => {
    bytes += metadataBytes ?? 0
    return bytes > MAX_PAGE_METADATA_BYTES
  })
  if (cutIndex <= 0) return slice
  const rows = slice.rows.slice(0, cutIndex)
  const { createdAt, id } = rows.at(-1)!
  return { rows, next: { at: createdAt, id } }
}

/** Checks level by level in a loop, so that deep nesting cannot exhaust the stack. Null if there is no problem. */
function problemOfMembers(metadata: Metadata): string | null {
  let level: Json[] = [metadata]
  for (let depth = 1; level.length > 0; depth++) {
    const next: Json[] = []
    for (const value of level) {
      if (typeof value === 'number' && !isExact(value)) return INEXACT_MESSAGE
      if (typeof value === 'string' && !isClean(value)) return UNCLEAN_MESSAGE
      if (typeof value !== 'object' || value === null) continue
      if (depth > MAX_METADATA_DEPTH) return `must be nested at most ${MAX_METADATA_DEPTH} levels deep`
      if (!Object.keys(value).every(isClean)) return UNCLEAN_MESSAGE
      for (const member of Object.values(value)) next.push(member)
    }
    level = next
  }
  return null
}

const UNCLEAN_MESSAGE = 'must not contain NUL or lone surrogates'
const INEXACT_MESSAGE =
  'must have no whole number beyond ±9007199254740991, which would be rounded: send it as a text'

/** Most JSON parsers, this one included, round whole numbers beyond ±2^53 without an error (RFC 7493 section 2.2). */
function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
}

/** PostgreSQL stores no NUL, and UTF-8 has no lone surrogate. */
function isClean(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}
