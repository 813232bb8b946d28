import type { Answer } from '@keyway/sdk/protocol'
import { html } from 'hono/html'
import { type ApiKey, statusOf } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import { API_ANSWER_TIMEOUT_MS } from '../hub/api-requests.ts'
import { texts } from '../languages/current.ts'
import { programOf } from './client-name.ts'
import type { LiveAgent } from './kit.ts'
import { ago, factList, formToken, type Html } from './layout.ts'

/** Maximum number of connections in the card; /agents lists all. */
const SHOWN_CONNECTIONS = 5
/** Maximum number of characters of an agent's answer, which is untrusted text. */
const MAX_ANSWER_LENGTH = 400

/** `answer` is null if none came in time; the whole result is null if the agent is no longer connected. */
export type GreetingResult = { answer: Answer | null; afterMs: number } | null

export interface LiveView {
  key: ApiKey
  agents: readonly LiveAgent[]
  now: Instant
  token: string
  /** Set in the response to the form that greets a connection. `greeting` is null if the connection had closed. */
  greetedConnection?: { connectionId: string; greeting: GreetingResult }
  /**
   * Set after the key was revoked on this page: the number of its connections, and the milliseconds until all were
   * closed, which are null if they were not closed in time.
   */
  revocation?: { connections: number; afterMs: number | null }
}

/** A text that changes whenever the key's status or its connections change, so that the card must be sent again. */
export function liveState({ key, agents, now }: Pick<LiveView, 'key' | 'agents' | 'now'>): string {
  return [statusOf(key, now), ...agents.map(agent => agent.connectionId)].join()
}

/** The card of a key: it waits for an agent, lists the connections, or says that the key has ended. */
export function liveCard(view: LiveView): Html {
  if (statusOf(view.key, view.now) !== 'active') return endedCard(view)
  return view.agents.length > 0 ? connectedCard(view) : waitingCard(view.key)
}

function waitingCard({ lastUsedAt }: ApiKey): Html {
  const { live } = texts
  return html`<p class="live" data-waiting><strong>${lastUsedAt === null ? live.waiting : live.nobody}</strong></p><p class="quiet">${live.waitingLead}</p>`
}

function connectedCard(view: LiveView): Html {
  const { live } = texts
  const { agents, key, token } = view
  const hiddenCount = agents.length - SHOWN_CONNECTIONS
  const title = agents.length === 1 ? live.live : live.liveMany({ count: agents.length })
  return html`<p class="live on" data-says="${view.greetedConnection ? greetingText(view.greetedConnection.greeting, true) : title}"><strong>${title}</strong></p>
${agents.slice(0, SHOWN_CONNECTIONS).map(agent => connection(view, agent))}
${hiddenCount > 0 ? html`<p><a href="/agents">${live.more({ count: hiddenCount })}</a></p>` : ''}
${view.greetedConnection && !agents.some(agent => agent.connectionId === view.greetedConnection?.connectionId) ? html`<p class="quiet">${live.gone}</p>` : ''}
<details class="confirm"><summary>${live.revokeNow}</summary><form method="post" action="/keys/${key.id}/live/end" data-in-place="live-card" class="inline">${formToken(token)}<p class="quiet">${live.revokeLead}</p><button class="danger small">${live.revokeNow}</button></form></details>`
}

function connection({ key, token, greetedConnection, now }: LiveView, agent: LiveAgent): Html {
  const { live } = texts
  const greeting =
    greetedConnection?.connectionId === agent.connectionId ? greetedConnection.greeting : undefined
  const facts: [string, Html | string][] = [
    [live.host, html`<code>${agent.address}</code>`],
    [live.program, html`<bdi>${programOf(agent.client)}</bdi>`],
    [live.since, ago(agent.connectedAt, now)],
    [live.latency, greeting?.answer ? live.milliseconds({ ms: greeting.afterMs }) : live.notMeasured],
  ]
  return html`<div class="connection" data-row="${agent.connectionId}">${factList(facts)}
${greeting === undefined ? '' : answerOf(greeting)}
<form method="post" action="/keys/${key.id}/live/hello" data-in-place="live-card">${formToken(token)}<input type="hidden" name="connection" value="${agent.connectionId}"><button class="second small">${live.hello}<span class="unseen"> ${live.helloTo} ${agent.address}</span></button></form></div>`
}

/** The outcome of a greeting as HTML; a result that the agent returned is quoted. */
export function answerOf(greeting: GreetingResult): Html {
  const result = resultText(greeting)
  return html`<p class="answer">${greetingText(greeting, false)}${result === null ? '' : html` <q>${result}</q>`}</p>`
}

/** @param includesResult whether the text ends with the agent's result, as screen readers need it */
function greetingText(greeting: GreetingResult, includesResult: boolean): string {
  const { live } = texts
  if (greeting === null) return live.gone
  const { answer, afterMs } = greeting
  if (answer === null) return live.silent({ count: API_ANSWER_TIMEOUT_MS / 1000 })
  if ('result' in answer)
    return `${live.answered({ ms: afterMs })}${includesResult ? ` ${resultText(greeting)}` : ''}`
  if (answer.error.code === 'no_handler') return live.noHandler({ ms: afterMs })
  return live.failed({ ms: afterMs, message: shorten(answer.error.message) })
}

function resultText(greeting: GreetingResult): string | null {
  const answer = greeting?.answer
  if (!answer || !('result' in answer)) return null
  return shorten(typeof answer.result === 'string' ? answer.result : JSON.stringify(answer.result))
}

function shorten(text: string): string {
  const characters = [...text.slice(0, 2 * MAX_ANSWER_LENGTH)]
  return characters.length > MAX_ANSWER_LENGTH
    ? `${characters.slice(0, MAX_ANSWER_LENGTH - 1).join('')}…`
    : text
}

function endedCard({ key, agents, revocation }: LiveView): Html {
  const { live } = texts
  const title = key.revokedAt === null ? live.ended : endedText(revocation, agents.length)
  // Once no connection is left, nothing changes any more, so script.js closes the event stream.
  const finalMark = agents.length === 0 ? html` data-final` : ''
  return html`<p class="live off" data-says="${title}"${finalMark}><strong>${title}</strong></p><p class="quiet">${live.endedLead}</p><p><a href="/keys">${live.allKeys}</a></p>`
}

function endedText(revocation: LiveView['revocation'], remaining: number): string {
  const { live } = texts
  if (remaining > 0) return live.closing
  if (!revocation?.connections || revocation.afterMs === null) return live.revoked
  return live.closedAfter({ count: revocation.connections, ms: revocation.afterMs })
}
