import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

// Receives the webhook of a payment provider and adds each payment to a person's balance, once. If your provider signs
// in another way, replace `payments.verify` by its library.
const { KEYWAY_URL = '', KEYWAY_API_KEY = '', PAYMENT_SECRET = '', PORT = '3002' } = process.env
const payments = new Webhook(PAYMENT_SECRET)

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  try {
    const event = payments.verify(Buffer.concat(chunks), request.headers)
    if (event.type === 'payment.succeeded') await credit(event.data)
    response.writeHead(204).end()
  } catch (error) {
    const isForged = error instanceof WebhookVerificationError
    if (!isForged) console.error(error)
    response.writeHead(isForged ? 401 : 500).end()
  }
})

/** `user_id` is metadata that your checkout attached to the payment. */
async function credit({ id, amount, metadata: { user_id } }) {
  const answer = await fetch(`${KEYWAY_URL}/v1/admin/users/${encodeURIComponent(user_id)}/credits`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEYWAY_API_KEY}`,
      'content-type': 'application/json',
      // Derived from the payment, not from the call: however often the provider calls, the payment is credited once.
      'idempotency-key': createHash('sha256').update(id).digest('hex'),
    },
    body: JSON.stringify({ amount, description: `Payment ${id}` }),
  })
  // An error status makes the provider call again, until the payment is credited.
  if (!answer.ok) throw new Error(`Keyway answered ${answer.status}: ${await answer.text()}`)
  console.log(`credited ${amount} to ${user_id}`)
}

server.listen(Number(PORT), () => console.log(`Listening on http://localhost:${PORT}`))
