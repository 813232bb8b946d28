import type { Clock } from '../../clock.ts'
import type { SessionLifetimes } from '../../sessions/session.ts'
import type { Route } from '../route.ts'
import type { HttpServices } from '../services.ts'
import { accountRoutes } from './account.ts'
import { agentRoutes } from './agents.ts'
import { apiKeyRoutes } from './api-keys.ts'
import { appRoutes } from './apps.ts'
import { hookRoutes } from './hooks.ts'
import { sessionRoutes } from './sessions.ts'
import { signInRoutes } from './sign-in.ts'
import { type SystemOptions, systemRoutes } from './system.ts'
import { tokenRoutes } from './tokens.ts'

export interface RoutesOptions extends Omit<SystemOptions, 'services'> {
  services: HttpServices
  clock: Clock
  lifetimes: SessionLifetimes
}

/** Everything that the API answers. What is not in this table is neither routed nor documented. */
export function createRoutes(options: RoutesOptions): Route[] {
  const { services, clock, lifetimes } = options
  return [
    ...systemRoutes(options),
    ...signInRoutes(services),
    ...tokenRoutes(services),
    ...apiKeyRoutes(services, clock),
    ...accountRoutes(services),
    ...sessionRoutes(services, lifetimes),
    ...agentRoutes(services),
    ...appRoutes(services),
    ...hookRoutes(services),
  ]
}
