import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import {
  CODE_WINDOW,
  type CodeAttempt,
  codeNetworks,
  codeRefusalError,
  codesRefusedUntil,
} from '../magic-links/code-limits.ts'
import { mailboxHashOf, UNRECOGNISED_QUEUE } from '../magic-links/typed-code.ts'
import type { Caller } from '../network.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage, Store } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { type DeviceAuthorization, parseUserCode, possibleHashes } from './device-authorization.ts'

export interface UserCodeDeps {
  storage: Storage
  clock: Clock
  secrets: Secrets
}

type CheckResult = { found: DeviceAuthorization | null } | { refusedUntil: number }

/**
 * Checks a typed user code (RFC 8628 section 5.1). A wrong one counts towards the limits of wrong sign-in codes
 * (code-limits.ts), and always towards those of unrecognised browsers: one guess is compared with all pending codes,
 * and everyone may create accounts, so the higher limits of recognised browsers would not bound guessing. Over a limit
 * no code is compared; `verification_uri_complete` still works.
 */
export function createUserCodeCheck({ storage, clock, secrets }: UserCodeDeps) {
  /**
   * Finds the authorization of a typed code; null if no device shows this code now. @throws KeywayError `rate_limited`
   */
  return async function authorizationOf(
    typed: string,
    person: { email: EmailAddress },
    caller: Caller,
  ): Promise<DeviceAuthorization | null> {
    const code = parseUserCode(typed)
    // The text does not have the form of a code, so it is no guess.
    if (code === null) return null
    const hashes = possibleHashes(secrets, code)
    const attempt: CodeAttempt = {
      mailbox: mailboxHashOf(secrets, person.email),
      isReturning: false,
      networks: codeNetworks(caller.address),
    }
    const id = newId(clock.now())
    const result = await storage.runExclusive([UNRECOGNISED_QUEUE], async (): Promise<CheckResult> => {
      // Checked by a read first, so that a refusal costs neither a lock nor a write.
      const refusalEnd = await refusedUntil(storage.store, attempt)
      if (refusalEnd !== null) return { refusedUntil: refusalEnd }
      return storage.transaction<CheckResult>(
        async tx => {
          await tx.wrongCodes.lock()
          const refusalEndUnderLock = await refusedUntil(tx, attempt)
          if (refusalEndUnderLock !== null) return { refusedUntil: refusalEndUnderLock }
          const now = clock.now()
          const found = await tx.deviceAuthorizations.findPendingByUserCode(hashes, now)
          if (!found) await tx.wrongCodes.insert({ ...attempt, id, linkId: id, at: now })
          return { found }
        },
        async store => ((await store.wrongCodes.exists(id)) ? { found: null } : undefined),
      )
    })
    if ('found' in result) return result.found
    throw codeRefusalError({ wait: result.refusedUntil - clock.now(), window: 'day' })
  }

  async function refusedUntil({ wrongCodes }: Pick<Store, 'wrongCodes'>, attempt: CodeAttempt) {
    const countedCodes = await wrongCodes.findCounted(attempt.mailbox, clock.now() - CODE_WINDOW)
    return codesRefusedUntil(attempt, countedCodes)
  }
}
