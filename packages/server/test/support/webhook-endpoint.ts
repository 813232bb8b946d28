import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createOutgoing } from '../../src/outgoing/outgoing.ts'
import { createDeliveryWorker, type WebhookDeliveryDeps } from '../../src/webhooks/delivery.ts'
import type { WebhookEventType } from '../../src/webhooks/webhook-event.ts'
import type { Services } from './services.ts'

export const LOCAL_NETWORKS = ['127.0.0.0/8', '::1/128']

export interface ReceivedEvent {
  id: string
  headers: Record<string, string>
  raw: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever the test says it must be
  body: any
}

export interface Endpoint {
  url: string
  /** All events in the order of their arrival, including those answered with an error. */
  received: ReceivedEvent[]
  /** Decides the answer to an event, or its status alone; by default 200. */
  answer: (
    event: ReceivedEvent,
  ) => { status: number; text?: string; headers?: Record<string, string> } | number
}

export async function openEndpoint(t: TestContext): Promise<Endpoint> {
  const endpoint: Endpoint = { url: '', received: [], answer: () => 200 }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const raw = Buffer.concat(chunks).toString()
    const headers = request.headers as Record<string, string>
    const event = { id: headers['webhook-id']!, headers, raw, body: JSON.parse(raw) }
    endpoint.received.push(event)
    const answer = endpoint.answer(event)
    const { status, text, headers: more } = typeof answer === 'number' ? { status: answer } : answer
    response.writeHead(status, more).end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  endpoint.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return endpoint
}

/** Whether one of the signatures is of this secret, computed from the specification. */
export function isSignedBy({ headers, raw }: ReceivedEvent, secret: string): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const message = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${raw}`
  const signature = createHmac('sha256', key).update(message).digest('base64')
  return headers['webhook-signature']!.split(' ').includes(`v1,${signature}`)
}

/** The webhook delivery of one node, which works only when the test calls `drain`. */
export function deliveryOf(services: Services, overrides: Partial<WebhookDeliveryDeps> = {}) {
  const call = createOutgoing(LOCAL_NETWORKS)
  return createDeliveryWorker({ ...services, call, random: () => 1, ...overrides })
}

/** Creates a webhook for an endpoint; returns its id and secret. */
export async function subscribe(
  services: Services,
  url: string,
  events: WebhookEventType[] = [],
): Promise<{ id: string; secret: string }> {
  const webhooks = await services.webhooks()
  const { webhook, secret } = await webhooks.create({ url, events }, BY_COMMAND_LINE)
  return { id: webhook.id, secret }
}
