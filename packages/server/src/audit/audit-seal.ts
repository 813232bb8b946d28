import type { Secrets } from '../secrets.ts'
import type { SealedPlace } from './audit-store.ts'

/** The two places in the chain that are sealed: its head, and the last row that retention removed. */
export type SealKind = 'head' | 'pruned'

export function sealPlace(
  secrets: Pick<Secrets, 'mac'>,
  kind: SealKind,
  { sequence, hash }: Omit<SealedPlace, 'mac'>,
): SealedPlace {
  return { sequence, hash, mac: secrets.mac('audit', messageOf(kind, sequence, hash)) }
}

export function isGenuine(
  secrets: Pick<Secrets, 'verifyMac'>,
  kind: SealKind,
  { sequence, hash, mac }: SealedPlace,
): boolean {
  return secrets.verifyMac('audit', messageOf(kind, sequence, hash), mac)
}

function messageOf(kind: SealKind, sequence: number, hash: string): string {
  return `${kind} ${sequence} ${hash}`
}
