/**
 * A token with other last characters. Characters that are the same each time would, once in a thousand runs, be those that it
 * ends with anyway.
 */
export function altered(token: string): string {
  return token.slice(0, -2) + (token.endsWith('AA') ? 'BA' : 'AA')
}
