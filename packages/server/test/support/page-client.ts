import assert from 'node:assert/strict'
import type { WebServer } from './web.ts'

/**
 * A minimal browser: keeps cookies, follows no redirects, and sends only `Accept`, its cookies and the given headers,
 * which for `post` are `SAME_ORIGIN` by default.
 */
export function createClient(url: string) {
  const jar = new Map<string, string>()
  const cookieAttributes = new Map<string, string>()
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: 'text/html', ...(cookie ? { cookie } : {}), ...init.headers }
    const answer = await fetch(url + path, { redirect: 'manual', ...init, headers })
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      cookieAttributes.set(name, line.slice(pair.length))
      if (value && !/max-age=0/i.test(line)) jar.set(name, value)
      else jar.delete(name)
    }
    return answer
  }
  return {
    jar,
    cookieAttributes,
    get: (path: string, headers: Record<string, string> = {}) => send(path, { headers }),
    async formToken(path: string): Promise<string> {
      return /name="form_token" value="([^"]+)"/.exec(await (await send(path)).text())![1]!
    },
    post: (path: string, fields: Record<string, string>, headers: Record<string, string> = SAME_ORIGIN) =>
      send(path, { method: 'POST', body: new URLSearchParams(fields), headers }),
  }
}

export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }
export const ADA = 'ada@example.com'
export type Client = ReturnType<typeof createClient>

export async function signedInClient(web: WebServer, email = ADA): Promise<Client> {
  const client = createClient(web.url)
  assert.equal((await signIn(client, web, email)).status, 303)
  return client
}

/** Signs in with the link of a mail; returns the response, which redirects to the first page. */
export async function signIn(client: Client, web: WebServer, email = ADA): Promise<Response> {
  const token = await client.formToken('/sign-in')
  const mailCountBefore = (await web.mails(email, 0)).length
  await client.post('/sign-in', { form_token: token, email })
  const [mail] = await web.mails(email, mailCountBefore + 1)
  const { searchParams } = new URL(mail!.link!)
  return client.post('/verify', { form_token: token, token: searchParams.get('token')!, email })
}
