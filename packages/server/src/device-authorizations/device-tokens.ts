import { type App, CLI_CLIENT_ID } from '../apps/app.ts'
import { type Clock, SECOND } from '../clock.ts'
import type { Caller } from '../network.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { AppGrant, Session } from '../sessions/session.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Transaction } from '../store.ts'
import type { User } from '../users/user.ts'
import { type DeviceAuthorization, KEY_CREATION_WINDOW } from './device-authorization.ts'
import type { DeviceAuthorizations, PollRefusal } from './device-authorizations.ts'
import { KEYS_CREATE } from './keyway-cli.ts'

export interface DeviceGrant {
  user: User
  session: Session
  /** All approved scopes, also for the SDK's command (`keyway-cli`), whose session has only `keys:create`. */
  scopes: readonly string[]
}

export interface DeviceTokens {
  /** Handles one poll of an authenticated client; an approved device gets a session of its own, once. */
  poll(app: App, deviceCode: string, caller: Caller): Promise<DeviceGrant | { refused: PollRefusal }>
}

/** Opens the sessions of approved devices (RFC 8628 section 3.4). */
export function createDeviceTokens({
  clock,
  sessions,
  deviceAuthorizations,
}: {
  clock: Clock
  sessions: Sessions
  deviceAuthorizations: Pick<DeviceAuthorizations, 'poll'>
}): DeviceTokens {
  return {
    async poll(app, deviceCode, caller) {
      const preparedSession = sessions.prepareForApp(
        app.id,
        { scopes: [], audience: null },
        clock.now(),
        caller,
      )
      const outcome = await deviceAuthorizations.poll(
        { deviceCode, clientId: app.id },
        {
          sessionId: preparedSession.id,
          async open(tx: Transaction, approved: DeviceAuthorization, user: User) {
            const session = await sessions.open(tx, user, {
              ...preparedSession,
              ...sessionFieldsOf(app, approved),
            })
            const about = { sessionId: session.id }
            await tx.securityEvents.insert(securityEvent('sign_in', user.id, clock.now(), caller, about))
            return { user, session, scopes: approved.scopes }
          },
        },
      )
      if ('refused' in outcome) return outcome
      return outcome.granted
    },
  }

  /** The session of the SDK's command may only create a key, and ends when the time for that has passed. */
  function sessionFieldsOf(app: App, { scopes, resource, authTime, signInId }: DeviceAuthorization) {
    const isCli = app.id === CLI_CLIENT_ID
    const grant: AppGrant = {
      scopes: isCli ? [KEYS_CREATE] : [...scopes],
      audience: resource,
      signInId: signInId ?? undefined,
    }
    const lifetimeSeconds = isCli ? KEY_CREATION_WINDOW / SECOND : undefined
    return { grant, authTime, lifetimeSeconds }
  }
}
