/** A redirect URI with parameters appended as text, so that the registered part stays unchanged. */
export function responseUri(redirectUri: string, params: Record<string, string | null>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== null) query.set(name, value)
  const text = query.toString()
  return text === '' ? redirectUri : `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${text}`
}
