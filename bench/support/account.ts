import type { Account, AttackJob } from './attacks.ts'
import { addressOf, linkTokenOf } from './people.ts'
import type { RunningProcess } from './processes.ts'

/** Creates a free account with a key, and signs a browser in to a second one, since each link signs in only once. */
export async function openAccount(server: RunningProcess, nextLinkNumber: () => number): Promise<Account> {
  const n = nextLinkNumber()
  const signInAnswer = await call(server, '/auth/verify-magic-link', {
    email: addressOf(n),
    token: linkTokenOf(n),
  })
  const accessToken = String(signInAnswer.access_token)
  const { key } = await call(server, '/v1/api-keys', { name: 'attack' }, accessToken)
  return {
    key: String(key),
    agentToken: await exchange(server, String(key)),
    accessToken,
    refreshToken: String(signInAnswer.refresh_token),
    cookie: await signInBrowser(server, nextLinkNumber()),
  }
}

async function signInBrowser({ port }: RunningProcess, n: number): Promise<string> {
  const url = `http://localhost:${port}`
  const page = await fetch(`${url}/sign-in`)
  const formToken = /name="form_token" value="([^"]+)"/.exec(await page.text())![1]!
  const answer = await fetch(`${url}/verify`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Cookie: cookiesOf(page), 'Sec-Fetch-Site': 'same-origin' },
    body: new URLSearchParams({ form_token: formToken, token: linkTokenOf(n), email: addressOf(n) }),
  })
  if (answer.status !== 303) throw new Error(`the browser was not signed in: ${answer.status}`)
  return cookiesOf(answer)
}

function cookiesOf(answer: Response): string {
  return answer.headers
    .getSetCookie()
    .map(line => line.split(';')[0])
    .join('; ')
}

export async function exchange(server: RunningProcess, key: string): Promise<string> {
  return String((await call(server, '/auth/agent-token', { api_key: key })).token)
}

async function call(
  { port }: RunningProcess,
  path: string,
  body: unknown,
  accessToken?: string,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(accessToken ? { Authorization: `Bearer ${accessToken}` } : {}),
    },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Record<string, unknown>
}

/** Lists the paths of all calls with a body, from the OpenAPI document, with `x` for each parameter. */
export async function bodyPaths({ port }: RunningProcess): Promise<AttackJob['bodyPaths']> {
  const answer = await fetch(`http://127.0.0.1:${port}/openapi.json`)
  const { paths } = (await answer.json()) as {
    paths: Record<string, Record<string, { requestBody?: unknown }>>
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.requestBody)
      .map(([method]) => ({ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, 'x') })),
  )
}
