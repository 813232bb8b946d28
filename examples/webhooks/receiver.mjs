import { createServer } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

// An endpoint for the webhooks of Keyway: verifies each call, ignores what it knows already, and answers at once.
const { WEBHOOK_SECRET = '', PORT = '3001' } = process.env
const webhook = new Webhook(WEBHOOK_SECRET)

/** Ids that were handled. A real receiver keeps them in its database, with what it did, in one transaction. */
const known = new Set()

const server = createServer(async (request, response) => {
  // The raw bytes: the signature covers these, not the same JSON written differently.
  const body = await bytesOf(request)
  try {
    const event = webhook.verify(body, request.headers)
    const id = request.headers['webhook-id']
    if (!known.has(id)) handle(event)
    known.add(id)
    response.writeHead(204).end()
  } catch (error) {
    // Anything but 2xx: Keyway tries again later.
    const isForged = error instanceof WebhookVerificationError
    response.writeHead(isForged ? 401 : 500).end(isForged ? 'not signed by Keyway' : 'not handled')
  }
})

/** Events of one subject come in the order of their sequence. Do long work elsewhere: an answer must come in 5 s. */
function handle({ type, subject, sequence, data }) {
  console.log(`${type} ${subject.type} ${subject.id} #${sequence} ${JSON.stringify(data)}`)
}

async function bytesOf(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

server.listen(Number(PORT), () => console.log(`Listening on http://localhost:${PORT}`))
