import type { Audit } from '../audit/audit.ts'
import type { ChangeLimits } from '../change-limits.ts'
import type { Clock } from '../clock.ts'
import type { KnownNetworks } from '../known-networks.ts'
import type { KeyLimiter } from '../limits/limits.ts'
import type { Log } from '../log.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import type { Storage } from '../store.ts'
import type { Meter } from '../usage/meter.ts'
import type { ImportedKeys } from './imported-keys.ts'
import type { KeyAlerts } from './key-alerts.ts'
import type { KeyLimits } from './key-limits.ts'

export interface ApiKeyDeps extends KeyLimits {
  storage: Storage
  audit: Audit
  clock: Clock
  log: Log
  outbox: Outbox
  alerts: KeyAlerts
  changeLimits: ChangeLimits
  meter: Meter
  limiter: Pick<KeyLimiter, 'quotasLeft'>
  policies: Pick<PolicyRegistry, 'read'>
  imported: Pick<ImportedKeys, 'mayBeKey' | 'load'>
  knownNetworks: Pick<KnownNetworks, 'noteUse'>
}
