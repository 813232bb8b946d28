/** The providers whose reports of bounces and complaints are understood. */
export type HookProvider = 'resend' | 'postmark'

/** A header by its lower-case name; undefined where it is absent or was sent twice. */
export type HookHeader = (name: string) => string | undefined

export interface HookCall {
  header: HookHeader
  /** The bytes as they came: a signature covers them. */
  body: Buffer
}

/** What the HTTP layer asks of the mail provider's adapter; neither edge imports the other. */
export interface MailHooks {
  /** Whether the headers alone leave it open that the provider sent this; asked before the body is read. */
  mayBeFrom(provider: HookProvider, header: HookHeader): boolean
  /** Records what the provider reports. A known provider's unknown events are accepted and ignored. */
  receive(provider: HookProvider, call: HookCall): Promise<'accepted' | 'forged' | 'unreadable'>
}
