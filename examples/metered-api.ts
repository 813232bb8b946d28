import { createServer, type ServerResponse } from 'node:http'
import { Keyway, KeywayError, type LeftOfLimits, type VerifiedKey } from '@keyway/sdk'

// An HTTP API of your own whose clients present a Keyway key: calls count against the key's rates and quota, and
// reports cost money.
const app = { id: process.env.KEYWAY_APP_ID ?? '', secret: process.env.KEYWAY_APP_SECRET ?? '' }
const port = Number(process.env.PORT ?? 9000)
const keyway = new Keyway({ app })

/** The number of calls that a request to each path counts as. */
const CALLS: Record<string, number> = { '/quote': 1, '/report': 10 }
const REPORT_PRICE = '0.25'

const server = createServer(async (request, response) => {
  const path = request.url ?? ''
  const calls = CALLS[path]
  if (calls === undefined) return send(response, 404, { error: 'not_found' })
  try {
    const key = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const verified = await keyway.apps.verifyKey(key, { consume: calls })
    if (!verified.active)
      return send(response, 401, { error: 'invalid_key' }, { 'WWW-Authenticate': 'Bearer' })
    if (path === '/report') await charge(verified, request.headers['idempotency-key'])
    // The owner of a key sets these fields: use them to identify a customer, never to grant rights.
    const { external_id, metadata } = verified
    send(
      response,
      200,
      { customer: external_id, plan: metadata?.plan ?? 'free' },
      rateLimitFields(verified.limits),
    )
  } catch (error) {
    refuse(response, error)
  }
})

/** Charges once for each Idempotency-Key of the client, and never beyond the spend limits of the key. */
async function charge(key: VerifiedKey, clientKey: string | string[] | undefined): Promise<void> {
  await keyway.apps.charge({
    user_id: key.sub,
    key_id: key.key_id,
    amount: REPORT_PRICE,
    description: 'a report',
    ...(typeof clientKey === 'string' && { idempotencyKey: `${key.key_id}:${clientKey}` }),
  })
}

/** The limit that is closest to being reached, in the format of the IETF draft on RateLimit fields. */
function rateLimitFields({ requests = [] }: LeftOfLimits = {}): Record<string, string> {
  const [nearest] = requests.toSorted((a, b) => a.remaining - b.remaining)
  if (!nearest) return {}
  return {
    RateLimit: `"requests";r=${nearest.remaining};t=${nearest.reset_seconds}`,
    'RateLimit-Policy': `"requests";q=${nearest.limit}`,
  }
}

/** Passes 429 and 402 on to the client, with the time to wait; answers any other failure with 503. */
function refuse(response: ServerResponse, error: unknown): void {
  const { status = 0, code = '', retryAfter } = error instanceof KeywayError ? error : {}
  const wait: Record<string, string> = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) }
  if (status === 429 || status === 402) send(response, status, { error: code }, wait)
  else if (code === 'charge_not_authorized') send(response, 403, { error: code })
  else {
    console.error(error)
    send(response, 503, { error: 'unavailable' }, { 'Retry-After': '1' })
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

server.listen(port, () => console.log(`Listening on http://localhost:${port}`))
