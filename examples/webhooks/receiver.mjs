import { createServer } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

// An endpoint for Keyway's webhooks: verifies each call, ignores duplicates, and answers at once.
const { WEBHOOK_SECRET = '', PORT = '3001' } = process.env
const webhook = new Webhook(WEBHOOK_SECRET)

/** Ids of handled events. A real receiver stores them in its database, in the transaction that handles the event. */
const handledIds = new Set()

const server = createServer(async (request, response) => {
  // The raw bytes: the signature does not match JSON that was parsed and serialised again.
  const body = await bytesOf(request)
  try {
    const event = webhook.verify(body, request.headers)
    const id = request.headers['webhook-id']
    if (!handledIds.has(id)) handle(event)
    handledIds.add(id)
    response.writeHead(204).end()
  } catch (error) {
    // After any status but 2xx Keyway tries again later.
    const isForged = error instanceof WebhookVerificationError
    response.writeHead(isForged ? 401 : 500).end(isForged ? 'not signed by Keyway' : 'not handled')
  }
})

/** Events of one subject arrive in the order of `sequence`. Do long work elsewhere: Keyway waits for 5 s. */
function handle({ type, subject, sequence, data }) {
  console.log(`${type} ${subject.type} ${subject.id} #${sequence} ${JSON.stringify(data)}`)
}

async function bytesOf(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

server.listen(Number(PORT), () => console.log(`Listening on http://localhost:${PORT}`))
