import { html, raw } from 'hono/html'
import { type ApiKey, allows } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import { texts } from '../languages/current.ts'
import { isLoopbackHost } from '../network.ts'
import { labelOf } from './key-list.ts'
import type { PageContext, PageKit } from './kit.ts'
import { type Html, time } from './layout.ts'
import { streamedCard } from './live.ts'
import { richText } from './rich.ts'

/** Calls for a key without `agent:connect`: the first one that its scopes allow is shown. */
const EXAMPLE_CALLS = [
  ['agents:read', '/v1/agents'],
  ['keys:read', '/v1/api-keys'],
  ['account:read', '/v1/me'],
  ['events:read', '/v1/security-events'],
] as const

/** An agent that connects, says so, and answers requests: one line without single quotes, for a shell to quote. */
const PYTHON_AGENT = [
  'import asyncio, platform, keyway',
  'agent = keyway.Agent()',
  'agent.on("ready", lambda ready: print("connected as", ready.connection_id, flush=True))',
  'agent.on_request(lambda request: "Hello from " + platform.node() + ", Python " + platform.python_version())',
  'asyncio.run(agent.run())',
].join('; ')

/** A way to run an agent, with the lines to copy. */
interface AgentExample {
  name: string
  label: string
  lead: Html | string
  line: string
  /** A command that installs what `line` needs, shown before `line`. Its label is the text between the two. */
  setup?: { label: string; line: string }
  /** The command of `line` for another shell. */
  otherShell?: { label: string; line: string }
}

/**
 * The only page that shows a key itself. It is the response to a form; script.js replaces its URL by that of the key's
 * page, so that going back or reloading opens that page.
 */
export function renderCreated(
  kit: PageKit,
  c: PageContext,
  newKey: { key: string; apiKey: ApiKey },
  oldKeyUntil: Instant | null,
): Response | Promise<Response> {
  const { keys } = texts
  const { apiKey } = newKey
  const body = html`<div class="head"><div><h1>${keys.created}</h1><p class="lead"><bdi>${labelOf(apiKey)}</bdi></p></div></div>
${oldKeyUntil ? html`<p class="banner notice">${richText(keys.rotatedUntil, { time: time(oldKeyUntil) })}</p>` : ''}
<section class="card" data-guards="${apiKey.id}" data-becomes="/keys/${apiKey.id}?done=shown_once"><ol class="steps">
<li><strong>${keys.copyTitle}</strong><p>${keys.createdLead}</p>${copyableText('new-key', newKey.key)}</li>
${allows(apiKey.scopes, 'agent:connect') ? connectSteps(kit, c, newKey) : callStep(kit, newKey)}
</ol></section>
<p><a class="button second" href="/keys" data-releases>${keys.done}</a></p>`
  c.header('Referrer-Policy', 'no-referrer')
  return kit.render(c, { title: keys.created, current: '/keys' }, body, 201)
}

function connectSteps(kit: PageKit, c: PageContext, { key, apiKey }: { key: string; apiKey: ApiKey }): Html {
  const { run, live } = texts
  const ways = waysToRun(kit.publicUrl, key)
  const view = { key: apiKey, agents: [], now: kit.clock.now(), token: kit.forms.token(c) }
  return html`<li><strong>${run.title}</strong>
<fieldset class="ways"><legend class="unseen">${run.ways}</legend>
<div class="segments">${ways.map(({ name, label }, index) => html`<input type="radio" id="way-${name}" name="way" value="${name}"${index === 0 ? raw(' checked') : ''}><label for="way-${name}">${label}</label>`)}</div>
${ways.map(way => html`<div class="way" data-way="${way.name}"><p>${way.lead}</p>${way.setup ? html`${copyableText(`run-${way.name}-once`, way.setup.line)}<p class="next">${way.setup.label}</p>` : ''}${copyableText(`run-${way.name}`, way.line)}${way.otherShell ? html`<details><summary>${way.otherShell.label}</summary>${copyableText(`run-${way.name}-other`, way.otherShell.line)}</details>` : ''}</div>`)}
</fieldset></li>
<li class="watch"><strong>${run.watch}</strong>
<div class="followed">${streamedCard(view)}${connectionHelp(kit.publicUrl, apiKey)}</div>
<noscript><p>${live.waitingElsewhere}</p><p><a class="button second" href="/keys/${apiKey.id}/live" target="_blank">${live.open}</a></p>${connectionHelp(kit.publicUrl, apiKey)}</noscript></li>`
}

/** What to check if no agent connects; script.js opens it after a while. */
function connectionHelp(publicUrl: string, { allowedNetworks }: ApiKey): Html {
  const { live } = texts
  const [pasted, reaches, version] = live.check
  const checks = [pasted, reaches({ address: `${publicUrl}/livez` }), version]
  if (allowedNetworks.length) checks.push(live.checkNetworks({ networks: allowedNetworks.join(', ') }))
  return html`<details class="help" data-opens-after="20" data-says="${live.helpNow}"><summary>${live.help}</summary><ul>${checks.map(check => html`<li>${check}</li>`)}</ul><button type="button" class="second small copy" data-copy="run-node" data-copied="${texts.keys.copied}">${live.again}</button></details>`
}

function waysToRun(publicUrl: string, key: string): AgentExample[] {
  const { run } = texts
  const { hostname, origin } = new URL(publicUrl)
  const hub = html`<code>${origin.replace(/^http/, 'ws')}/hub</code>`
  // In a container, loopback is the container itself.
  const networkOption = isLoopbackHost(hostname) ? ' --network host' : ''
  const settings = `KEYWAY_URL=${publicUrl} KEYWAY_API_KEY=${key}`
  return [
    {
      name: 'node',
      label: run.node,
      lead: run.nodeLead,
      line: `${settings} npx -y ${publicUrl}/sdk.tgz`,
      otherShell: {
        label: run.powerShell,
        line: `$env:KEYWAY_URL='${publicUrl}'; $env:KEYWAY_API_KEY='${key}'; npx -y ${publicUrl}/sdk.tgz`,
      },
    },
    {
      name: 'python',
      label: run.python,
      lead: run.pythonLead,
      setup: {
        label: run.pythonRun,
        line: `pip install "$(curl -fsS -o /dev/null -w '%{redirect_url}' ${publicUrl}/sdk.whl)"`,
      },
      line: `${settings} python3 -c '${PYTHON_AGENT}'`,
    },
    {
      name: 'curl',
      label: run.curl,
      lead: richText(run.curlLead, { hub }),
      line: `curl -sS ${publicUrl}/auth/agent-token -H 'Content-Type: application/json' -d '{"api_key":"${key}"}'`,
    },
    {
      name: 'docker',
      label: run.docker,
      lead: run.dockerLead,
      line: `docker run --rm -it${networkOption} -e KEYWAY_URL=${publicUrl} -e KEYWAY_API_KEY=${key} node:24-slim npx -y ${publicUrl}/sdk.tgz`,
    },
  ]
}

function callStep({ publicUrl }: PageKit, { key, apiKey }: { key: string; apiKey: ApiKey }): Html {
  const { run } = texts
  const [, path] = EXAMPLE_CALLS.find(([scope]) => allows(apiKey.scopes, scope)) ?? []
  if (!path) return html`<li><strong>${run.api}</strong><p>${run.noAgent}</p></li>`
  return html`<li><strong>${run.api}</strong><p>${run.noAgent} ${run.apiLead}</p>${copyableText('run-call', `curl -sS ${publicUrl}${path} -H 'Authorization: Bearer ${key}'`)}</li>`
}

/** A text with a copy button, shown if scripts run. Its space is reserved, so that the layout does not shift. */
function copyableText(id: string, text: string): Html {
  const { keys } = texts
  return html`<div class="secret"><code id="${id}" tabindex="0" data-secret>${text}</code><button type="button" class="second copy" data-copy="${id}" data-copied="${keys.copied}" aria-live="polite">${keys.copy}</button></div>`
}
