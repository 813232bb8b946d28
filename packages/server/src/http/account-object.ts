import type { AccountObject, ChargeAuthorizationObject, EmailChangeObject } from '@keyway/sdk/protocol'
import { type EmailChange, unconfirmedSides } from '../account-changes/email-change.ts'
import type { ChargeAuthorization } from '../billing/charge-authorization.ts'
import { CURRENCY, formatMoney } from '../billing/money.ts'
import { toRfc3339, toRfc3339OrNull } from '../clock.ts'
import type { HttpPorts } from './http-ports.ts'
import { notFound } from './not-found.ts'
import { userObject } from './user-object.ts'

/** Reads an account as its owner sees it. @throws KeywayError `not_found` if no user has this id */
export async function readAccount(
  { users, accounts, emailChanges }: Pick<HttpPorts, 'users' | 'accounts' | 'emailChanges'>,
  userId: string,
): Promise<AccountObject> {
  const [user, account, emailChange] = await Promise.all([
    users.get(userId),
    accounts.get(userId),
    emailChanges.pending(userId),
  ])
  if (!user) throw notFound()
  const { plan, status, startedAt } = account.subscription
  return {
    user: userObject(user),
    balance: { amount: formatMoney(account.balance), currency: CURRENCY },
    subscription: { plan, status, started_at: toRfc3339(startedAt) },
    charge_authorizations: account.authorizations.map(chargeAuthorizationObject),
    email_change: emailChange && emailChangeObject(emailChange),
    deletes_at: toRfc3339OrNull(user.deletesAt),
  }
}

export function emailChangeObject(change: EmailChange): EmailChangeObject {
  const { newEmail, createdAt, expiresAt } = change
  return {
    email: newEmail,
    awaits: unconfirmedSides(change),
    created_at: toRfc3339(createdAt),
    expires_at: toRfc3339(expiresAt),
  }
}

export function chargeAuthorizationObject(authorization: ChargeAuthorization): ChargeAuthorizationObject {
  return {
    app_id: authorization.appId,
    name: authorization.name,
    granted_at: toRfc3339(authorization.grantedAt),
    revoked_at: toRfc3339OrNull(authorization.revokedAt),
  }
}
