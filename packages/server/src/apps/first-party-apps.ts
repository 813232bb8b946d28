/**
 * The service's own apps, registered by the first migration. Every new account lets these charge its balance, and no
 * other.
 */
export const FIRST_PARTY_APP_IDS = ['console', 'hub'] as const
