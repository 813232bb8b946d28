import { pause, systemClock } from '../clock.ts'
import { randomId } from '../environment.ts'
import { KeywayError } from '../errors.ts'
import type {
  IntrospectionAnswer,
  KeyVerification,
  LedgerEntryObject,
  Page,
  RevocationObject,
} from '../protocol.ts'
import type { Transport } from '../transport.ts'
import { KeyVerifier } from './key-verifier.ts'

export interface Charge {
  user_id: string
  /** A positive decimal with at most 6 places. */
  amount: string
  description: string
  /** A key of the user, whose spend limits the charge counts towards. */
  key_id?: string | undefined
  /** Identifies this charge: calls with the same Idempotency-Key charge once. Default: a random one for each call. */
  idempotencyKey?: string | undefined
}

export interface VerifyKeyOptions {
  /** Calls to count against the rates and the quota of the key. Default 0. */
  consume?: number | undefined
}

export interface FollowOptions {
  /** `next_cursor` of an earlier page. Default: 20 minutes back. */
  cursor?: string | undefined
  /** Polling interval in milliseconds. Default 1000. */
  everyMs?: number | undefined
  signal?: AbortSignal | undefined
  /** Called after each poll that reached the end of the feed. */
  onCaughtUp?: (() => void) | undefined
}

const POLL_INTERVAL_MS = 1_000

/** Calls of registered apps, with their id and secret. */
export class AppCalls {
  readonly #transport: Transport
  readonly #verifier: KeyVerifier

  constructor(transport: Transport) {
    this.#transport = transport
    this.#verifier = new KeyVerifier(transport)
  }

  /** Charges a user who authorised the app. Safe to retry with the same `idempotencyKey`. */
  charge({ idempotencyKey = randomId(), ...body }: Charge): Promise<LedgerEntryObject> {
    const headers = { 'idempotency-key': idempotencyKey }
    return this.#transport.call('POST', '/v1/charges', { body, headers, as: 'app', repeatable: true })
  }

  /** Introspects a key, access token or agent token (RFC 7662). */
  introspect(token: string, { consume }: { consume?: number } = {}): Promise<IntrospectionAnswer> {
    const body = consume === undefined ? { token } : { token, consume }
    return this.#transport.call('POST', '/auth/introspect', { body, as: 'app', repeatable: !consume })
  }

  /**
   * Verifies a key that a client of your own API presented, and counts `consume` calls against its limits; none is
   * counted if a limit would be exceeded. Not retried, since your client is waiting and a retry could count the calls
   * twice. Concurrent verifications share requests.
   *
   * @throws KeywayError `rate_limited` (429) and `quota_exhausted` (402), with `retryAfter` where waiting helps;
   *   `forbidden` for a key whose calls this app may not count
   */
  verifyKey(key: string, { consume }: VerifyKeyOptions = {}): Promise<KeyVerification> {
    return this.#verifier.verify(key, consume)
  }

  /**
   * A page of the keys, sessions and accounts that ended after `cursor`, but within the last 20 minutes, oldest first.
   * Without a cursor the page begins 20 minutes ago. A later page may repeat an entry.
   */
  revocations({
    cursor,
    signal,
  }: {
    cursor?: string
    signal?: AbortSignal
  } = {}): Promise<Page<RevocationObject>> {
    return this.#transport.call('GET', '/v1/revocations', { query: { cursor }, as: 'app', signal })
  }

  /**
   * Yields the keys, sessions and accounts that ended in the last 20 minutes (or within them since `cursor`), and those
   * that end from now on, so that a server of your own can end their connections. An entry may come twice. Continues
   * after outages of the service; returns when the signal aborts; throws an error that is not retryable.
   */
  async *followRevocations(options: FollowOptions = {}): AsyncGenerator<RevocationObject, void> {
    const { everyMs = POLL_INTERVAL_MS, signal, onCaughtUp } = options
    let { cursor } = options
    while (!signal?.aborted) {
      const page = await this.revocations({ cursor, signal }).catch(error => {
        if (!signal?.aborted && !(error instanceof KeywayError && error.retryable)) throw error
      })
      if (page) {
        yield* page.data
        cursor = page.next_cursor ?? cursor
        if (page.has_more) continue
        onCaughtUp?.()
      }
      await pause(systemClock, everyMs, signal).catch(() => {})
    }
  }
}
