import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import { createKeyedWindows } from '../keyed-windows.ts'
import { siteWindows } from '../magic-links/send-limits.ts'
import { type Caller, siteOf } from '../network.ts'
import { longestOf, type RateWindow } from '../rate-windows.ts'
import { equals, randomToken, sha256 } from '../secrets.ts'
import type { Session } from '../sessions/session.ts'
import type { Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { User } from '../users/user.ts'
import {
  DEVICE_CODE_LIFETIME,
  type DeviceAuthorization,
  type DeviceDecision,
  formatUserCode,
  generateUserCode,
  isFreshSignIn,
  POLL_INTERVAL,
  parseUserCode,
  possibleHashes,
  SLOW_DOWN_STEP,
  userCodeHash,
} from './device-authorization.ts'
import { grantConsent, isApprovalStillValid } from './device-consent.ts'
import { createUserCodeCheck, type UserCodeDeps } from './typed-user-code.ts'

const DEVICE_CODE_BYTES = 32
const TICKET_BYTES = 16
/** Attempts to find an unused user code. There are 2.5 × 10^10 codes, so three collisions in a row mean a defect. */
const USER_CODE_ATTEMPTS = 3

/** Requests per network and node: each stores a row for 70 minutes, so this bounds what strangers can store. */
export const DEVICE_REQUEST_LIMITS: readonly RateWindow[] = [
  { window: 'minute', limit: 30 },
  { window: 'hour', limit: 300 },
]
const MAX_REMEMBERED_NETWORKS = 20_000
const MAX_REMEMBERED_SITES = 2000

export interface DeviceRequest {
  clientId: string
  scopes: readonly string[]
  resource: string | null
  deviceName: string | null
}

/** The answer to a device authorization request (RFC 8628 section 3.2), without the verification URIs. */
export interface DeviceCodes {
  deviceCode: string
  userCode: string
  /** A secret for `verification_uri_complete`, which also contains the user code. */
  ticket: string
  /** Seconds. */
  expiresIn: number
  /** Seconds. */
  interval: number
}

/** Why a poll returns no token: an error code of RFC 8628 section 3.5, or `invalid_grant` of RFC 6749 section 5.2. */
export type PollRefusal =
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'invalid_grant'

/** Opens the session in the transaction of a redemption. Its ids and secrets are created before that transaction. */
export interface Grant<Granted> {
  sessionId: string
  open(tx: Transaction, authorization: DeviceAuthorization, user: User): Promise<Granted>
}

export interface DeviceAuthorizations {
  /** Stores a request. @throws KeywayError `rate_limited`: too many from this network */
  request(wanted: DeviceRequest, caller: Caller): Promise<DeviceCodes>
  /** The pending request that a `verification_uri_complete` names, or null. */
  findByLink(ticket: string, userCode: string): Promise<DeviceAuthorization | null>
  /** The pending request whose code a person typed, or null. @throws KeywayError `rate_limited` */
  findByTypedCode(
    typed: string,
    person: { email: EmailAddress },
    caller: Caller,
  ): Promise<DeviceAuthorization | null>
  /** The registered name of the app that made the request; its client id if the app was removed meanwhile. */
  clientName(request: Pick<DeviceAuthorization, 'clientId'>): Promise<string>
  /** The request if it is neither decided nor expired, otherwise null. */
  pending(id: string): Promise<DeviceAuthorization | null>
  /**
   * Approves or denies the request for the person; of several decisions the first counts. Returns `stale` if the person
   * must sign in again to approve, since the last sign-in is more than 30 minutes ago; `not_pending` if the request was
   * decided before or has expired.
   */
  decide(
    id: string,
    decision: DeviceDecision,
    person: { user: User; session: Session },
    caller: Caller,
  ): Promise<'done' | 'stale' | 'not_pending'>
  /**
   * One poll of a client (RFC 8628 section 3.4). An approved request is redeemed once, however many polls are
   * concurrent.
   */
  poll<Granted>(
    presented: { deviceCode: string; clientId: string },
    grant: Grant<Granted>,
  ): Promise<{ granted: Granted } | { refused: PollRefusal }>
}

export function createDeviceAuthorizations(deps: UserCodeDeps): DeviceAuthorizations {
  const { storage, clock, secrets } = deps
  const { store } = storage
  const countRequest = createRequestLimits(clock)

  return {
    async request(wanted, caller) {
      countRequest(caller)
      for (let attempt = 0; attempt < USER_CODE_ATTEMPTS; attempt++) {
        const codes = newCodes()
        if (await store.deviceAuthorizations.insert(newAuthorization(wanted, codes, caller))) return codes
      }
      throw new Error('no unused user code was found')
    },

    async findByLink(ticket, userCode) {
      const code = parseUserCode(userCode)
      const authorization =
        code && pendingOrNull(await store.deviceAuthorizations.findByTicket(sha256(ticket)))
      if (!code || !authorization) return null
      const isCodeOfTicket = possibleHashes(secrets, code).some(hash =>
        equals(hash, authorization.userCodeHash),
      )
      return isCodeOfTicket ? authorization : null
    },

    findByTypedCode: createUserCodeCheck(deps),

    async clientName({ clientId }) {
      return (await store.apps.find(clientId))?.name ?? clientId
    },

    async pending(id) {
      return pendingOrNull(await store.deviceAuthorizations.find(id))
    },

    async decide(id, decision, { user, session }, caller) {
      const now = clock.now()
      if (decision === 'approved' && !isFreshSignIn(session, now)) return 'stale'
      const by = { userId: user.id, signInId: session.id, authTime: session.authTime, at: now }
      const consentId = newId(now)
      return storage.transaction<'done' | 'not_pending'>(
        async tx => {
          const decidedAuthorization = await tx.deviceAuthorizations.decide(id, decision, by)
          if (decidedAuthorization && decision === 'approved')
            await grantConsent(tx, decidedAuthorization, { id: consentId, userId: user.id, now, caller })
          return decidedAuthorization ? 'done' : 'not_pending'
        },
        async currentStore => {
          const storedAuthorization = await currentStore.deviceAuthorizations.find(id)
          return storedAuthorization?.signInId === session.id && storedAuthorization.decidedAt === now
            ? 'done'
            : undefined
        },
      )
    },

    async poll(presented, grant) {
      const authorization = await store.deviceAuthorizations.findByDeviceCode(sha256(presented.deviceCode))
      if (!authorization || authorization.clientId !== presented.clientId) return { refused: 'invalid_grant' }
      const now = clock.now()
      if (authorization.redeemedAt !== null) return { refused: 'invalid_grant' }
      if (authorization.decision === 'denied') return { refused: 'access_denied' }
      if (now >= authorization.expiresAt) return { refused: 'expired_token' }
      if (authorization.decision === 'approved') return redeem(authorization, grant)
      // Each early poll lengthens the interval, at most to the code's lifetime; after that, polls cause no more writes.
      const isOnTime = await store.deviceAuthorizations.recordPoll(
        authorization.id,
        now,
        SLOW_DOWN_STEP,
        DEVICE_CODE_LIFETIME,
      )
      return { refused: isOnTime ? 'authorization_pending' : 'slow_down' }
    },
  }

  async function redeem<Granted>(
    approved: DeviceAuthorization,
    grant: Grant<Granted>,
  ): Promise<{ granted: Granted } | { refused: PollRefusal }> {
    const { id, userId, signInId } = approved
    return storage.runExclusive([`device:${id}`], () =>
      storage.transaction(async tx => {
        // Locks the user's row, so that the account cannot be suspended between this check and the session's insert.
        const user = userId === null ? null : await tx.users.lock(userId)
        if (user?.status !== 'active') return { refused: 'access_denied' }
        // A person who ends a session also withdraws the approvals that were given in it.
        const signInSession = signInId === null ? null : await tx.sessions.find(signInId)
        if (signInSession?.endedAt !== null) return { refused: 'access_denied' }
        if (!(await isApprovalStillValid(tx, approved))) return { refused: 'access_denied' }
        const redeemedAuthorization = await tx.deviceAuthorizations.redeem(id, grant.sessionId, clock.now())
        if (!redeemedAuthorization) return { refused: 'invalid_grant' }
        return { granted: await grant.open(tx, redeemedAuthorization, user) }
      }),
    )
  }

  function newCodes(): DeviceCodes {
    return {
      deviceCode: randomToken(DEVICE_CODE_BYTES),
      userCode: formatUserCode(generateUserCode()),
      ticket: randomToken(TICKET_BYTES),
      expiresIn: DEVICE_CODE_LIFETIME / 1000,
      interval: POLL_INTERVAL / 1000,
    }
  }

  function newAuthorization(wanted: DeviceRequest, codes: DeviceCodes, caller: Caller): DeviceAuthorization {
    const now = clock.now()
    return {
      ...wanted,
      id: newId(now),
      deviceCodeHash: sha256(codes.deviceCode),
      userCodeHash: userCodeHash(secrets, parseUserCode(codes.userCode)!),
      ticketHash: sha256(codes.ticket),
      address: caller.address,
      network: caller.network,
      client: caller.client,
      createdAt: now,
      expiresAt: now + DEVICE_CODE_LIFETIME,
      pollInterval: POLL_INTERVAL,
      lastPolledAt: null,
      decision: null,
      decidedAt: null,
      userId: null,
      signInId: null,
      authTime: null,
      redeemedAt: null,
      sessionId: null,
      keyId: null,
    }
  }

  function pendingOrNull(authorization: DeviceAuthorization | null): DeviceAuthorization | null {
    return authorization && authorization.decision === null && clock.now() < authorization.expiresAt
      ? authorization
      : null
  }
}

/** Returns a function that counts a request for the caller's network and its IPv6 /48, and throws over a limit. */
function createRequestLimits(clock: Clock): (caller: Caller) => void {
  const windows = DEVICE_REQUEST_LIMITS
  const networks = createKeyedWindows({ clock, windows, maxNames: MAX_REMEMBERED_NETWORKS })
  const sites = createKeyedWindows({ clock, windows: siteWindows(windows), maxNames: MAX_REMEMBERED_SITES })
  return ({ address, network }) => {
    const site = siteOf(address)
    const wait = longestOf([networks.count(network), site === null ? null : sites.count(site)])
    if (!wait) return
    const detail = `Too many devices ask for access from this network. Try again in ${wait.retryAfter} seconds.`
    throw new KeywayError('rate_limited', detail, { ...wait })
  }
}
