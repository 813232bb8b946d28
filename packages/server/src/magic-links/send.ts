import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { MIN_VALIDITY_LEFT } from '../outbox/delivery.ts'
import { randomToken, sha256 } from '../secrets.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { codeHash, generateCode } from './login-code.ts'
import { MAGIC_LINK_LIFETIME, MAGIC_LINK_LIFETIME_SECONDS, MAGIC_LINK_TOKEN_BYTES } from './magic-link.ts'
import type { MagicLinkDeps } from './magic-links.ts'
import {
  addressBucket,
  networkBucket,
  type Refusal,
  refusal,
  returningBucket,
  type SendBucket,
} from './send-limits.ts'
import { mailedLink } from './verify-url.ts'

interface Wanted {
  email: EmailAddress
  appId: string
  isReturning?: boolean
}

/**
 * Queues one mail with a link and a code. Nothing here looks whether the address has an account, so the work
 * cannot tell: the mail's template is chosen when the mail is written.
 */
export function createSend(deps: MagicLinkDeps) {
  const { storage, clock, secrets, outbox } = deps

  return async function send(wanted: Wanted, caller: Caller) {
    const proof = prepareProof()
    const app = await storage.store.apps.find(wanted.appId)
    const link = mailedLink(app?.verifyUrl ?? deps.verifyUrl, { ...wanted, token: proof.token })
    const buckets = bucketsOf(wanted, caller)

    const refused = await storage.transaction(
      async tx => {
        const now = clock.now()
        const tooMany = refusal(buckets, await tx.magicLinks.lockSends(buckets.map(asked), now), now)
        if (tooMany) return tooMany
        const expiresAt = now + MAGIC_LINK_LIFETIME
        await Promise.all([
          tx.magicLinks.recordSend(
            buckets.map(bucket => bucket.name),
            now,
          ),
          tx.magicLinks.insert({
            id: proof.loginId,
            tokenHash: sha256(proof.token),
            codeHash: proof.codeHash,
            email: wanted.email,
            appId: wanted.appId,
            createdAt: now,
            expiresAt,
            usedAt: null,
            codeTries: 0,
          }),
          outbox.enqueue(tx, {
            id: proof.mailId,
            recipient: wanted.email,
            userId: null,
            content: { kind: 'sign_in', link, code: proof.code, expiresAt },
            now,
            sendBefore: expiresAt - MIN_VALIDITY_LEFT,
          }),
        ])
        return null
      },
      async store => ((await store.magicLinks.find(proof.loginId)) ? null : undefined),
    )
    if (refused) throw rateLimited(refused)
    return { loginId: proof.loginId, expiresIn: MAGIC_LINK_LIFETIME_SECONDS }
  }

  function prepareProof() {
    const now = clock.now()
    const loginId = newId(now)
    const code = generateCode()
    return {
      loginId,
      mailId: newId(now),
      token: randomToken(MAGIC_LINK_TOKEN_BYTES),
      code,
      codeHash: codeHash(secrets, loginId, code),
    }
  }

  /** Sorted by name, as every node locks them: two sends never wait for each other in a circle. */
  function bucketsOf({ email, isReturning }: Wanted, caller: Caller): SendBucket[] {
    const own = isReturning ? returningBucket(email, deps.limits) : addressBucket(email, deps.limits)
    return deps.networkLimits ? [own, networkBucket(caller.network, deps.networkLimits)] : [own]
  }
}

function asked(bucket: SendBucket): { name: string; limits: number[] } {
  return { name: bucket.name, limits: bucket.windows.map(({ limit }) => limit) }
}

function rateLimited({ retryAfter, window, setting }: Refusal): KeywayError {
  return new KeywayError(
    'rate_limited',
    `Too many sign-in mails were asked for within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`,
    { retryAfter, window, setting },
  )
}
