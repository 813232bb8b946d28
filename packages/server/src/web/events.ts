import { html } from 'hono/html'
import type { Instant } from '../clock.ts'
import { texts } from '../languages/current.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import { describeClient } from './client-name.ts'
import { ago, type Html } from './layout.ts'

/** A security event as a row of a list. */
export function eventRow({ type, at, client, network }: SecurityEvent, now: Instant): Html {
  const { eventNames } = texts.account
  return html`<li class="item event"><span>${eventNames[type]}</span><span class="quiet">${client ? describeClient(client) : ''} ${network ? html`<code>${network}</code>` : ''}</span><span class="when">${ago(at, now)}</span></li>`
}
