/** The providers whose reports of bounces and complaints are accepted. */
export type HookProvider = 'resend' | 'postmark'

/** A header by its lower-case name; undefined where it is absent or was sent twice. */
export type HookHeader = (name: string) => string | undefined

export interface HookCall {
  header: HookHeader
  /** The bytes as they came: a signature covers them. */
  body: Buffer
}

/** The port between the HTTP layer and the mail providers' adapters; neither edge imports the other. */
export interface MailHooks {
  /** Whether the provider may have sent this, judged by the headers before the body is read. */
  mayBeFrom(provider: HookProvider, header: HookHeader): boolean
  /** Records what the provider reports. A known provider's unknown events are accepted and ignored. */
  receive(provider: HookProvider, call: HookCall): Promise<'accepted' | 'forged' | 'unreadable'>
}
