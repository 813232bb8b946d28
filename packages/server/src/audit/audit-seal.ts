import type { Secrets } from '../secrets.ts'
import type { SealedPosition } from './audit-store.ts'

/** The two positions in the chain that are sealed: its head, and the last row that retention may remove. */
export type SealKind = 'head' | 'pruned'

export function sealPosition(
  secrets: Pick<Secrets, 'mac'>,
  kind: SealKind,
  { sequence, hash }: Omit<SealedPosition, 'mac'>,
): SealedPosition {
  return { sequence, hash, mac: secrets.mac('audit', messageOf(kind, sequence, hash)) }
}

export function isGenuineSeal(
  secrets: Pick<Secrets, 'verifyMac'>,
  kind: SealKind,
  { sequence, hash, mac }: SealedPosition,
): boolean {
  return secrets.verifyMac('audit', messageOf(kind, sequence, hash), mac)
}

function messageOf(kind: SealKind, sequence: number, hash: string): string {
  return `${kind} ${sequence} ${hash}`
}
