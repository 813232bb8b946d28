import { HOUR } from '../clock.ts'
import { newId, parseId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Secrets } from '../secrets.ts'
import type { Store, Transaction } from '../store.ts'
import { type EmailAddress, withoutTag } from '../users/email-address.ts'
import {
  CODE_WINDOW,
  type CodeAttempt,
  type CodeRefusal,
  codeNetworks,
  codeRefusalError,
  codesRefusedUntil,
  isFromUnrecognisedBrowser,
  MAX_CODE_TRIES,
  WRONG_CODES_UNRECOGNISED,
} from './code-limits.ts'
import { isRightCode } from './login-code.ts'
import { belongsTo, linkRefusalError, linkState, type MagicLink, type TypedCode } from './magic-link.ts'
import type { MagicLinkDeps } from './magic-link-deps.ts'

/** `isLast` is whether this wrong code exhausted the limit of unrecognised browsers. */
type CheckResult =
  | { is: 'right' }
  | { is: 'wrong'; isLast: boolean }
  | { is: 'refused'; refusal: CodeRefusal }

/**
 * Name of the in-memory queue (`runExclusive`) that serialises, in this process, the code checks of unrecognised
 * browsers: those without a cookie of an earlier sign-in to the address. One locked row serialises those of all
 * processes. Recognised browsers have a queue per mailbox, so that a flood of checks from others does not delay them.
 */
export const UNRECOGNISED_QUEUE = 'typed-codes'

function queueOf({ isReturning, mailbox }: CodeAttempt): string {
  return isReturning ? `${UNRECOGNISED_QUEUE}:${mailbox}` : UNRECOGNISED_QUEUE
}

/** The name of a mailbox in rows of wrong codes: a keyed hash of the address without its tag. */
export function mailboxHashOf(secrets: Pick<Secrets, 'mac'>, email: EmailAddress): string {
  return secrets.mac('wrong-code', withoutTag(email))
}

/**
 * Checks a typed code within the bounds of code-limits.ts.
 *
 * Over a limit, a code is refused after a read, and never compared, so right and wrong ones are treated alike.
 * Otherwise one lock covers another check of the limits and the record of a wrong code, and the answer follows the
 * commit: concurrent guesses cannot exceed the limits.
 */
export function createCodeCheck({ storage, clock, secrets, log }: MagicLinkDeps) {
  /** @throws KeywayError `magic_link_invalid`, `rate_limited` */
  return async function checkTypedCode(proof: TypedCode, caller: Caller): Promise<MagicLink> {
    const id = parseId(proof.loginId)
    const link = id === null ? null : await storage.store.magicLinks.find(id)
    if (!link || !belongsTo(secrets, link, proof)) throw linkRefusalError('magic_link_invalid')
    const attempt: CodeAttempt = {
      mailbox: mailboxHashOf(secrets, proof.email),
      isReturning: proof.isReturning ?? false,
      networks: codeNetworks(caller.address),
    }
    const earlyRefusal = await refusalOf(storage.store, link, attempt)
    if (earlyRefusal) throw codeRefusalError(earlyRefusal)
    const result = await check(link, proof.code, attempt)
    if (result.is === 'right') return link
    if (result.is === 'refused') throw codeRefusalError(result.refusal)
    if (result.isLast)
      log.warn(
        { hours: CODE_WINDOW / HOUR },
        'wrong codes reached the service-wide limit: for this time only links, and codes in recognised browsers, work',
      )
    throw linkRefusalError('magic_link_invalid')
  }

  async function check(link: MagicLink, code: string, attempt: CodeAttempt): Promise<CheckResult> {
    const isRight = isRightCode(secrets, link, code)
    // Guesses at the code of a used or expired link are not counted: `verify` refuses it even with the right code. That
    // code is reported as right, so that the error of `verify` says whether the link was used or has expired.
    if (linkState(link, clock.now()) !== 'live')
      return isRight ? { is: 'right' } : { is: 'wrong', isLast: false }
    const id = newId(clock.now())
    return storage.runExclusive([queueOf(attempt)], async () => {
      // Other checks may have used up the limit while this one waited: refuse without a transaction.
      const earlyRefusal = await refusalOf(storage.store, link, attempt)
      if (earlyRefusal) return { is: 'refused', refusal: earlyRefusal }
      return storage.transaction<CheckResult>(
        async tx => {
          await tx.wrongCodes.lock()
          const refusal = await refusalOf(tx, link, attempt)
          if (refusal) return { is: 'refused', refusal }
          return isRight ? { is: 'right' } : record(tx, link, { id, ...attempt })
        },
        async store => ((await store.wrongCodes.exists(id)) ? { is: 'wrong', isLast: false } : undefined),
      )
    })
  }

  async function record(
    tx: Transaction,
    link: MagicLink,
    wrong: CodeAttempt & { id: string },
  ): Promise<CheckResult> {
    const now = clock.now()
    await Promise.all([
      tx.magicLinks.countCodeTry(link.id, MAX_CODE_TRIES),
      tx.wrongCodes.insert({ ...wrong, linkId: link.id, at: now }),
    ])
    const wrongCodes = await tx.wrongCodes.findCounted(wrong.mailbox, now - CODE_WINDOW)
    const isLast =
      !wrong.isReturning && wrongCodes.filter(isFromUnrecognisedBrowser).length >= WRONG_CODES_UNRECOGNISED
    return { is: 'wrong', isLast }
  }

  /** Why the code is not checked; null if it may be checked. */
  async function refusalOf(
    store: Pick<Store, 'magicLinks' | 'wrongCodes'>,
    { id }: MagicLink,
    attempt: CodeAttempt,
  ): Promise<CodeRefusal | null> {
    const now = clock.now()
    const [link, wrongCodes] = await Promise.all([
      store.magicLinks.find(id),
      store.wrongCodes.findCounted(attempt.mailbox, now - CODE_WINDOW),
    ])
    const refusedUntil = codesRefusedUntil(attempt, wrongCodes)
    if (refusedUntil !== null) return { wait: refusedUntil - now, window: 'day' }
    return link && link.codeTries < MAX_CODE_TRIES ? null : { wait: (link?.expiresAt ?? now) - now }
  }
}
