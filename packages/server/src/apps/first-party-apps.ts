/**
 * The service's own apps, registered by the first migration. New accounts authorise only these to charge the balance.
 */
export const FIRST_PARTY_APP_IDS = ['console', 'hub'] as const
