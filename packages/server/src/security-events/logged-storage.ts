import type { Log } from '../log.ts'
import type { Storage, Store, Transaction } from '../store.ts'
import type { SecurityEvent } from './security-event.ts'

/**
 * The same storage, which tells the log of security events once they are durable. At `debug`, since at `info` what
 * succeeds has no line; what only an attack or a broken client causes is a warning.
 */
export function withSecurityLog<Base extends Storage>(storage: Base, log: Log): Base {
  return {
    ...storage,
    async transaction<Outcome>(
      work: (tx: Transaction) => Promise<Outcome>,
      landed?: (store: Store) => Promise<Outcome | undefined>,
    ): Promise<Outcome> {
      let events: SecurityEvent[] = []
      const outcome = await storage.transaction(tx => {
        events = [] // a transaction that is tried again begins anew
        return work(noting(tx, events))
      }, landed)
      for (const event of events) tell(event)
      return outcome
    },
  }

  function noting(tx: Transaction, events: SecurityEvent[]): Transaction {
    const { securityEvents } = tx
    return {
      ...tx,
      securityEvents: {
        ...securityEvents,
        async insert(event) {
          await securityEvents.insert(event)
          events.push(event)
        },
      },
    }
  }

  function tell({ type, userId, keyId, sessionId, network }: SecurityEvent): void {
    const fields = {
      type,
      user_id: userId,
      network,
      ...(keyId && { key_id: keyId }),
      ...(sessionId && { session_id: sessionId }),
    }
    if (type === 'refresh_token_reused') log.warn(fields, 'security event')
    else log.debug(fields, 'security event')
  }
}
