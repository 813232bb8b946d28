/**
 * What one part of the service tells the others, on every node, once the transaction that caused it is
 * durable. An event carries ids only and decides nothing: whoever hears it asks the store how things stand.
 * So a lost, late, doubled or forged event can never end or keep anything wrongly.
 */
export type Event =
  /** A key was revoked, replaced, or its networks or expiry changed. */
  | { type: 'api_key.changed'; keyId: string; userId: string }
  | { type: 'session.ended'; sessionId: string; userId: string }
  /** An account was suspended, activated or deleted. */
  | { type: 'user.changed'; userId: string }
  /** Mail was queued. */
  | { type: 'mail.queued' }
  | { type: 'signing_keys.changed' }
  /** Events may have been missed just now; whoever relies on them asks the store again. */
  | { type: 'events.gap' }
  /** Text from one hub node to another; see hub/. */
  | { type: 'hub.relay'; to: string; payload: string }

export interface Events {
  /** Calls `listener` for every event of every node, this one included. Returns the way to stop. */
  subscribe(listener: (event: Event) => void): () => void
  /** Tells what no transaction caused (hub relays). Events of a transaction go through `Transaction.publish`. */
  publish(event: Event): Promise<void>
}
