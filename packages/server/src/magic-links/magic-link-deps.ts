import type { Audit } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import type { Invitations } from '../invitations/invitations.ts'
import type { Log } from '../log.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import type { Secrets } from '../secrets.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { Storage } from '../store.ts'
import type { ListedAdministrators } from '../users/listed-administrators.ts'
import type { SendLimits } from './send-limits.ts'
import type { SignUpRule } from './sign-up.ts'

export interface MagicLinkDeps extends SendLimits {
  storage: Storage
  clock: Clock
  secrets: Secrets
  outbox: Outbox
  sessions: Sessions
  audit: Audit
  listed: Pick<ListedAdministrators, 'hashIfListed' | 'claim'>
  policies: Pick<PolicyRegistry, 'read'>
  maySignUp: SignUpRule
  invitations: Pick<Invitations, 'accept' | 'giveRole'>
  log: Log
  /** The page that mailed links open, unless the app has one of its own. */
  verifyUrl: string
}
