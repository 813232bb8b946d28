import { once } from 'node:events'
import { WebSocket } from 'ws'
import { inTime, until } from './patience.ts'

/** The main use case over HTTP and WebSocket, one function per step, without the SDK. */
export interface Journey {
  sendLink(email: string, appId?: string): Promise<void>
  /** Waits for a mail in the local inbox whose token was not returned before, and returns that token. */
  readToken(email: string): Promise<string>
  verify(email: string, token: string): Promise<SignIn>
  me(accessToken: string): Promise<Me>
  createKey(accessToken: string, name: string, appId?: string): Promise<{ id: string; key: string }>
  exchange(key: string): Promise<string>
  /** Connects and waits for `ready`. */
  connect(agentToken: string): Promise<WebSocket>
  revoke(accessToken: string, keyId: string): Promise<void>
}

export interface SignIn {
  user: { id: string; email: string }
  access_token: string
  refresh_token: string
  is_new_user: boolean
}

export interface Me {
  balance: { amount: string; currency: string }
  subscription: { plan: string; status: string }
}

export function createJourney(url: string): Journey {
  const returnedTokens = new Set<string>()
  return {
    async sendLink(email, appId) {
      await call('POST', '/auth/send-magic-link', { email, app_id: appId })
    },
    async readToken(email) {
      return until(`a mail for ${email}`, async () => {
        const inbox = await call<{ data: { link: string | null }[] }>(
          'GET',
          `/inbox?to=${encodeURIComponent(email)}`,
        )
        const tokens = inbox.data.flatMap(mail =>
          mail.link ? [new URL(mail.link).searchParams.get('token')!] : [],
        )
        const token = tokens.find(each => !returnedTokens.has(each))
        if (token) returnedTokens.add(token)
        return token
      })
    },
    verify: (email, token) => call<SignIn>('POST', '/auth/verify-magic-link', { email, token }),
    me: accessToken => call<Me>('GET', '/v1/me', undefined, accessToken),
    createKey: (accessToken, name, appId) =>
      call('POST', '/v1/api-keys', { name, app_id: appId }, accessToken),
    async exchange(key) {
      return (await call<{ token: string }>('POST', '/auth/agent-token', { api_key: key })).token
    },
    async connect(agentToken) {
      const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/hub`, 'keyway.hub.v1', {
        headers: { authorization: `Bearer ${agentToken}` },
      })
      const [frame] = await inTime('the first frame', once(socket, 'message'))
      const { type } = JSON.parse(String(frame))
      if (type !== 'ready') throw new Error(`expected ready, got ${type}`)
      return socket
    },
    async revoke(accessToken, keyId) {
      await call('DELETE', `/v1/api-keys/${keyId}`, undefined, accessToken)
    },
  }

  async function call<Answer>(method: string, path: string, body?: object, bearer?: string): Promise<Answer> {
    const response = await fetch(url + path, {
      method,
      headers: {
        accept: 'application/json',
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return JSON.parse(text)
  }
}

export async function closeCode(socket: WebSocket): Promise<number> {
  const [code] = await inTime('the close of a connection', once(socket, 'close'))
  return code
}
