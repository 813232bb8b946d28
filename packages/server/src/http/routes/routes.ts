import type { Clock } from '../../clock.ts'
import type { SessionLifetimes } from '../../sessions/session-lifetime.ts'
import type { FailureLimits } from '../failure-limits.ts'
import type { HttpPorts } from '../http-ports.ts'
import type { Route } from '../route.ts'
import { accountRoutes } from './account.ts'
import { accountChangeRoutes } from './account-changes.ts'
import { appRoutes } from './admin/apps.ts'
import { auditRoutes } from './admin/audit.ts'
import { importRoutes } from './admin/imports.ts'
import { invitationRoutes } from './admin/invitations.ts'
import { keyRoutes } from './admin/keys.ts'
import { operationRoutes } from './admin/operation.ts'
import { peopleRoutes } from './admin/people.ts'
import { personListRoutes } from './admin/person-lists.ts'
import { policyRoutes } from './admin/policies.ts'
import { statisticsRoutes } from './admin/statistics.ts'
import { usageOfOthersRoutes } from './admin/usage.ts'
import { webhookRoutes } from './admin/webhooks.ts'
import { agentTokenRoute } from './agent-token.ts'
import { agentRoutes } from './agents.ts'
import { apiKeyRoutes } from './api-keys.ts'
import { chargeRoutes } from './charges.ts'
import { consentRoutes } from './consents.ts'
import { type DocsOptions, docsRoutes } from './docs.ts'
import { errorRoutes } from './errors.ts'
import { exportRoutes } from './exports.ts'
import { type HealthOptions, healthRoutes } from './health.ts'
import { hookRoutes } from './hooks.ts'
import { hubRoutes } from './hub.ts'
import { introspectionRoutes } from './introspect.ts'
import { jwksRoutes } from './jwks.ts'
import { magicLinkRoutes } from './magic-links.ts'
import { type MetricsOptions, metricsRoutes } from './metrics.ts'
import { oauthRoutes } from './oauth.ts'
import { revocationRoutes } from './revocations.ts'
import { revokeRoute } from './revoke.ts'
import { type RootOptions, rootRoutes } from './root.ts'
import { sdkRoutes } from './sdk.ts'
import { securityEventRoutes } from './security-events.ts'
import { sessionRoutes } from './sessions.ts'
import { signInForAppsRoutes } from './sign-in-for-apps.ts'
import { usageRoutes } from './usage.ts'

/**
 * First path segments that the API uses. A request below one reaches the pages only if it matches a route whose
 * `leftToPages` is true for it, such as a browser's request for `/errors/{code}`.
 */
const API_SEGMENTS = new Set([
  'v1',
  'auth',
  '.well-known',
  'errors',
  'hub',
  'livez',
  'readyz',
  'openapi.json',
  'metrics',
  'hooks',
])
/** The client packages: `/sdk.tgz`, `/sdk-0.1.0.tgz`, `/sdk.whl`, `/keyway-0.1.0-py3-none-any.whl`. */
const PACKAGE = /^(?:sdk|keyway)[^/]*\.(?:tgz|whl)$/

export function isApiPath(path: string): boolean {
  const firstSegment = path.split('/')[1] ?? ''
  return API_SEGMENTS.has(firstSegment) || PACKAGE.test(firstSegment)
}

export interface RoutesOptions
  extends RootOptions,
    MetricsOptions,
    DocsOptions,
    Omit<HealthOptions, 'services'> {
  services: HttpPorts
  clock: Clock
  lifetimes: SessionLifetimes
  assertMayGuess: FailureLimits['assertMayGuess']
}

export function createRoutes(options: RoutesOptions): Route[] {
  const { services, clock, lifetimes } = options
  return [
    ...rootRoutes(options),
    ...jwksRoutes(services),
    ...healthRoutes(options),
    ...metricsRoutes(options),
    ...docsRoutes(options),
    ...sdkRoutes(options.publicUrl),
    ...errorRoutes(),
    ...hubRoutes(options.publicUrl),
    ...magicLinkRoutes(services, options),
    agentTokenRoute(services),
    revokeRoute(services),
    ...introspectionRoutes(services, options.publicUrl),
    ...oauthRoutes(services, options.publicUrl),
    ...signInForAppsRoutes(services),
    ...apiKeyRoutes(services, clock),
    ...usageRoutes(services),
    ...accountRoutes(services),
    ...accountChangeRoutes(services, clock),
    ...exportRoutes(services, clock),
    ...consentRoutes(services),
    ...securityEventRoutes(services),
    ...sessionRoutes(services, lifetimes),
    ...agentRoutes(services),
    ...chargeRoutes(services),
    ...revocationRoutes(services),
    ...hookRoutes(services),
    ...peopleRoutes(services),
    ...personListRoutes(services, clock),
    ...keyRoutes(services, clock),
    ...appRoutes(services),
    ...operationRoutes(services),
    ...auditRoutes(services),
    ...statisticsRoutes(services),
    ...usageOfOthersRoutes(services),
    ...policyRoutes(services),
    ...invitationRoutes(services, clock),
    ...webhookRoutes(services),
    ...importRoutes(services),
  ]
}
