/** What the calls of each tag are about. */
export const TAGS = {
  Service: 'Addresses, health, metrics and documents of the service itself.',
  'Sign-in': 'Sign-in by a mailed link or code, and the refresh of sessions.',
  Sessions: 'Where a person is signed in, and the end of it.',
  Account: 'Profile, balance, ledger, authorisations, consents and security events of a person.',
  'API keys': 'Long-lived keys: what they may do, from where, how much and until when.',
  Tokens: 'Short-lived tokens for keys, and the check and end of any credential.',
  OAuth: 'The standard endpoints for clients of OAuth 2.0 and OpenID Connect.',
  Agents: 'Live connections to the hub, and messages to them.',
  Usage: 'What keys and persons did, by the hour and by the day.',
  Apps: 'What a registered app does with its id and secret: charge, introspect, follow revocations.',
  Administration: 'What administrators and support may see and do, each with its right and its audit event.',
} as const

export type Tag = keyof typeof TAGS
