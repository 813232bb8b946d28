import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { MIN_VALIDITY_LEFT } from '../outbox/delivery.ts'
import { randomToken, sha256 } from '../secrets.ts'
import type { Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { codeHash, generateCode } from './login-code.ts'
import { MAGIC_LINK_LIFETIME, MAGIC_LINK_LIFETIME_SECONDS, MAGIC_LINK_TOKEN_BYTES } from './magic-link.ts'
import type { MagicLinkDeps } from './magic-link-deps.ts'
import { bucketsOf, namesOf, rateLimited, refusalByRead, sendWithinLimits } from './send-limits.ts'
import { mailedLink } from './verify-url.ts'

interface WantedMail {
  email: EmailAddress
  appId: string
  isReturning?: boolean
  locale?: string | null
}

/** The secrets and ids of one mail, created before the transaction that may queue it. */
interface MailSecrets {
  loginId: string
  mailId: string
  token: string
  code: string
  codeHash: string
}

/**
 * Queues one mail with a link and a code. Nothing here checks whether the address has an account, so timing cannot
 * reveal it; the mail's template is chosen at delivery. Limits are read first: if one is reached already, the request
 * is refused without a transaction or a lock, and without waiting for other requests.
 */
export function createSend(deps: MagicLinkDeps) {
  const { storage, clock, secrets, outbox } = deps

  return async function send(wanted: WantedMail, caller: Caller) {
    const buckets = bucketsOf(wanted, caller, deps)
    const earlyRefusal = await refusalByRead(storage.store.magicLinks, buckets, clock.now())
    if (earlyRefusal) throw rateLimited(earlyRefusal)

    const mailSecrets = createMailSecrets()
    const app = await storage.store.apps.find(wanted.appId)
    const link = mailedLink(app?.verifyUrl ?? deps.verifyUrl, { ...wanted, token: mailSecrets.token })
    const refusal = await storage.runExclusive(namesOf(buckets), () =>
      storage.transaction(
        tx => {
          const now = clock.now()
          return sendWithinLimits(tx.magicLinks, buckets, now, () =>
            queue(tx, wanted, { ...mailSecrets, link, client: caller.client }, now),
          )
        },
        async store => ((await store.magicLinks.find(mailSecrets.loginId)) ? null : undefined),
      ),
    )
    if (refusal) throw rateLimited(refusal)
    return { loginId: mailSecrets.loginId, expiresIn: MAGIC_LINK_LIFETIME_SECONDS }
  }

  function createMailSecrets(): MailSecrets {
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

  async function queue(
    tx: Transaction,
    { email, appId, locale = null }: WantedMail,
    mailSecrets: MailSecrets & { link: string; client: string | null },
    now: Instant,
  ) {
    const expiresAt = now + MAGIC_LINK_LIFETIME
    const { link, code, client } = mailSecrets
    await Promise.all([
      tx.magicLinks.insert({
        id: mailSecrets.loginId,
        tokenHash: sha256(mailSecrets.token),
        codeHash: mailSecrets.codeHash,
        email,
        appId,
        createdAt: now,
        expiresAt,
        usedAt: null,
        codeTries: 0,
        locale,
      }),
      outbox.enqueue(tx, {
        id: mailSecrets.mailId,
        recipient: email,
        userId: null,
        content: { kind: 'sign_in', link, code, expiresAt, client },
        locale,
        now,
        sendBefore: expiresAt - MIN_VALIDITY_LEFT,
      }),
    ])
  }
}
