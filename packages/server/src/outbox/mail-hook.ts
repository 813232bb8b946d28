/** The providers whose reports of bounces and complaints are accepted. */
export type HookProvider = 'resend' | 'postmark'

/** Reads a header by its lower-case name; undefined if it is absent or was sent twice. */
export type HookHeader = (name: string) => string | undefined

/** A mail provider's request, which reports a bounce or complaint. */
export interface HookCall {
  header: HookHeader
  /** The raw bytes, which the signature covers. */
  body: Buffer
}

/** The port between the HTTP layer and the adapters of mail providers, which must not import each other. */
export interface MailHooks {
  /** Whether a request with these headers may come from the provider; checked before the body is read. */
  mayBeFrom(provider: HookProvider, header: HookHeader): boolean
  /** Verifies a report and records it. Unknown kinds of events are accepted and ignored. */
  receive(provider: HookProvider, call: HookCall): Promise<'accepted' | 'forged' | 'unreadable'>
}
