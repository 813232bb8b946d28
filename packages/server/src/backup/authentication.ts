import type { Secrets } from '../secrets.ts'

/** What makes and verifies the MACs of backups and journals. */
export type FileSecrets = Pick<Secrets, 'mac' | 'verifyMac' | 'ids' | 'fingerprint'>

/** How far the files that are read may be believed. */
export interface Trust {
  secrets: FileSecrets
  /**
   * Also accept files of versions that wrote no MAC, and a journal that lacks files. Whoever could write to them
   * could have added keys, administrators and credit; the operator says so explicitly.
   */
  unauthenticated: boolean
}

/** What `--unauthenticated` gives up, in one sentence for every refusal and help text. */
export const UNAUTHENTICATED_MEANS =
  '--unauthenticated reads it all the same: then nothing shows whether somebody added keys, administrators or credit to it.'

const SEPARATOR = '\t'

/** A line with its MAC. JSON has no raw tab, so the last one separates the two. */
export function withMac(text: string, mac: string): string {
  return text + SEPARATOR + mac
}

/** The text of a line and its MAC; null where it carries none. */
export function splitMac(line: string): { text: string; mac: string } | null {
  const at = line.lastIndexOf(SEPARATOR)
  return at < 0 ? null : { text: line.slice(0, at), mac: line.slice(at + 1) }
}

/** Why a MAC was made under no secret of ours, by fingerprint; null where one of ours made or may have made it. */
export function foreignSecret(mac: string, secrets: FileSecrets): string | null {
  const [id = ''] = mac.split('.')
  if (secrets.ids.includes(id)) return null
  const named = /^[0-9a-f]{8}$/.test(id) ? id : 'of no known form'
  return `was written under the secret ${named}, and KEYWAY_SECRET has ${secrets.ids.join(', ')}. Give that secret too; it may stand behind a new one`
}
