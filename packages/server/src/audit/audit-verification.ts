import type { Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { type AuditEvent, FIRST_HASH, hashOf, reasonHash } from './audit-event.ts'
import { isGenuineSeal } from './audit-seal.ts'
import type { AuditChain } from './audit-store.ts'

/** Rows per statement. */
const BATCH = 500
/** Maximum number of attempts: an attempt fails if retention removes rows while it reads them. */
const MAX_ATTEMPTS = 3

/** The number of verified rows and whether the last one is sealed, or what is wrong with the chain. */
export type VerificationResult = { rows: number; isSealed: boolean } | { mistake: string }

/**
 * Reads all rows and computes their hashes again: finds a changed, missing, added or moved row, and seals that were not
 * made with `KEYWAY_SECRET`. Cannot detect that rows after the last seal were removed or replaced by a chain of other
 * rows, if the stored head of the chain was changed to match.
 */
export async function verifyAudit({
  storage,
  secrets,
}: {
  storage: Pick<Storage, 'store'>
  secrets: Secrets
}): Promise<VerificationResult> {
  const { audit } = storage.store
  for (let attempt = 1; ; attempt++) {
    const chain = await audit.chain()
    const result = sealMistake(chain) ?? (await addedRow(chain)) ?? (await verifyRows(chain))
    const wasPruned = (await audit.chain()).pruned?.sequence !== chain.pruned?.sequence
    if (!('mistake' in result) || !wasPruned || attempt === MAX_ATTEMPTS) return result
  }

  function sealMistake({ sequence, sealed, pruned }: AuditChain): VerificationResult | null {
    if (sealed && !isGenuineSeal(secrets, 'head', sealed))
      return { mistake: `the seal of row ${sealed.sequence} was not made with KEYWAY_SECRET` }
    if (pruned && !isGenuineSeal(secrets, 'pruned', pruned))
      return {
        mistake: `the mark that rows up to ${pruned.sequence} were removed was not made with KEYWAY_SECRET`,
      }
    if (sealed && sealed.sequence > sequence)
      return { mistake: `rows after ${sequence} are missing: row ${sealed.sequence} was sealed` }
    return null
  }

  /** Looks for a row outside the chain, which lists and exports would show all the same. */
  async function addedRow({ sequence }: AuditChain): Promise<VerificationResult | null> {
    const [firstRow] = await audit.after(Number.MIN_SAFE_INTEGER, {}, 1)
    if (firstRow && firstRow.sequence < 1) return { mistake: `row ${firstRow.sequence} was added` }
    const [rowBeyond] = await audit.after(sequence, {}, 1)
    // Rows that were appended meanwhile moved the head too.
    const isAdded = rowBeyond && rowBeyond.sequence > (await audit.chain()).sequence
    return isAdded ? { mistake: `row ${rowBeyond.sequence} was added` } : null
  }

  async function verifyRows(chain: AuditChain): Promise<VerificationResult> {
    const { pruned, sealed } = chain
    let lastRow = { sequence: pruned?.sequence ?? 0, hash: pruned?.hash ?? FIRST_HASH }
    let rows = 0
    while (lastRow.sequence < chain.sequence) {
      const batch = await audit.after(lastRow.sequence, {}, BATCH)
      if (batch.length === 0) break
      for (const row of batch) {
        if (row.sequence > chain.sequence) break
        const mistake = rowMistake(row, lastRow)
        if (mistake) return { mistake }
        if (sealed?.sequence === row.sequence && sealed.hash !== row.hash)
          return { mistake: `row ${row.sequence} is not the one that was sealed` }
        lastRow = row
        rows++
      }
      if (batch.at(-1)!.sequence >= chain.sequence) break
    }
    if (lastRow.sequence !== chain.sequence)
      return { mistake: `rows after ${lastRow.sequence} are missing: there were ${chain.sequence}` }
    if (lastRow.hash !== chain.hash)
      return { mistake: `row ${lastRow.sequence} is not the last that was appended` }
    return { rows, isSealed: sealed?.sequence === chain.sequence }
  }
}

function rowMistake(row: AuditEvent, previousRow: { sequence: number; hash: string }): string | null {
  if (row.sequence !== previousRow.sequence + 1) return `row ${previousRow.sequence + 1} is missing`
  if (row.previousHash !== previousRow.hash)
    return `row ${row.sequence} does not follow row ${previousRow.sequence}`
  if (hashOf(row.previousHash, row) !== row.hash) return `row ${row.sequence} was changed`
  const { reason } = row
  if (reason?.text != null && reason.salt !== null && reasonHash(reason.salt, reason.text) !== reason.hash)
    return `the reason of row ${row.sequence} was changed`
  return null
}
