import type { Secrets } from '../secrets.ts'

/** Makes and verifies the MACs of backups and journals. */
export type FileSecrets = Pick<Secrets, 'mac' | 'verifyMac' | 'ids' | 'fingerprint'>

/** Which files are accepted when a backup or journal is read. */
export interface Trust {
  secrets: FileSecrets
  /**
   * Whether to also accept files of versions that wrote no MAC, and a journal with missing or truncated files. Anyone
   * who could write to such files may have added keys, administrators and credit, so the operator must ask for this
   * explicitly.
   */
  unauthenticated: boolean
}

/** The risk of `--unauthenticated`, for error messages and help. */
export const UNAUTHENTICATED_RISK =
  '--unauthenticated accepts it anyway, without proof that no keys, administrators or credit were added to it.'

const SEPARATOR = '\t'

/** A line with its MAC appended. JSON contains no raw tab, so the last tab separates the two. */
export function withMac(text: string, mac: string): string {
  return text + SEPARATOR + mac
}

/** Splits a line into its text and its MAC; null if the line has no MAC. */
export function splitMac(line: string): { text: string; mac: string } | null {
  const end = line.lastIndexOf(SEPARATOR)
  return end < 0 ? null : { text: line.slice(0, end), mac: line.slice(end + 1) }
}

/**
 * Null if the secret that the MAC names is in KEYWAY_SECRET. Otherwise the rest of an error message, after the words
 * that name the line.
 */
export function unknownSecretProblem(mac: string, secrets: FileSecrets): string | null {
  const [id = ''] = mac.split('.')
  if (secrets.ids.includes(id)) return null
  const secretName = /^[0-9a-f]{8}$/.test(id) ? `the secret ${id}` : 'an unknown secret'
  return `was written with ${secretName}, but KEYWAY_SECRET has ${secrets.ids.join(', ')}. Add that secret; it may be listed after a new one`
}
