/**
 * A token whose last characters were changed, always to other ones: fixed characters could by chance equal the original
 * ones.
 */
export function altered(token: string): string {
  return token.slice(0, -2) + (token.endsWith('AA') ? 'BA' : 'AA')
}
