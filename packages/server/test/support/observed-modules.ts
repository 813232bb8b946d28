import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { setTimeout } from 'node:timers'
import type { newApiKey } from '../../src/api-keys/api-key.ts'
import type { newAppSecret } from '../../src/apps/app-secret.ts'
import type { loadConfig } from '../../src/config.ts'
import { type guardConnections, NOISY_REFUSED_ABOVE } from '../../src/http/connection-guard.ts'
import type { createLog, Log } from '../../src/log.ts'
import type { generateCode } from '../../src/magic-links/login-code.ts'
import type { createSend } from '../../src/magic-links/send.ts'
import type { mailedLink } from '../../src/magic-links/verify-url.ts'
import type { createMetrics, Metrics } from '../../src/metrics/metrics.ts'
import type { createSecrets, Purpose, randomToken } from '../../src/secrets.ts'
import type { startServer } from '../../src/server.ts'
import type { pageCookie, refreshToken } from '../../src/sessions/refresh-token.ts'
import type { createJwt } from '../../src/signing-keys/jwt.ts'
import type { Recorder } from './recording.ts'

/*
 * Observes the functions that create secrets, and two whose output is not all written to a stream (`createLog`, which
 * drops lines below its level, and `createMetrics`). Modules that import one of them get it wrapped in an observer,
 * which calls the original and returns its result. The imports are redirected by Node's resolver, without changes to
 * the product. Calls within a module are not observed, so these must be functions that other modules call.
 *
 * One function is changed instead (`guardConnections`): servers refuse no connections, unless a test sets the limit.
 * All clients of a test share one network, whose new connections would be reset at random after a burst of refusals.
 */

/** Paths below `src/`, with their observed functions; a test compares them with the sources. */
export const OBSERVED: Readonly<Record<string, readonly string[]>> = {
  'api-keys/api-key.ts': ['newApiKey'],
  'apps/app-secret.ts': ['newAppSecret'],
  'config.ts': ['loadConfig'],
  'http/connection-guard.ts': ['guardConnections'],
  'log.ts': ['createLog'],
  'magic-links/login-code.ts': ['generateCode'],
  'magic-links/send.ts': ['createSend'],
  'magic-links/verify-url.ts': ['mailedLink'],
  'metrics/metrics.ts': ['createMetrics'],
  'secrets.ts': ['randomToken', 'createSecrets'],
  'server.ts': ['startServer'],
  'sessions/refresh-token.ts': ['refreshToken', 'pageCookie'],
  'signing-keys/jwt.ts': ['createJwt'],
}

const SOURCE = /\/packages\/server\/src\/(.+\.ts)$/
const OBSERVERS = Symbol.for('keyway.test.observers')
/** How long the close of a server waits for its last metrics, which need the database: a test may have stopped it. */
const SCRAPE_TIMEOUT_MS = 500
/**
 * Purposes whose sealed content is a secret itself; other sealed content (mails) contains secrets recorded elsewhere.
 */
const SEALED_SECRETS: readonly Purpose[] = [
  'signing-key',
  'session-secret',
  'address-pepper',
  'webhook-secret',
]
/** Purposes of MACs that are no secrets: one replaces an erased address, one is logged with the audit chain's head. */
const PUBLIC_MACS: readonly Purpose[] = ['erased-address', 'audit']
const unmockedSetTimeout = setTimeout

export function observeModules(recorder: Recorder): void {
  recordSettings(recorder, process.env)
  Object.assign(globalThis, { [OBSERVERS]: observers(recorder) })
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context)
      const names = OBSERVED[SOURCE.exec(resolved.url)?.[1] ?? '']
      if (!names || context.parentURL?.startsWith('data:')) return resolved
      return { url: observedModule(resolved.url, names), format: 'module', shortCircuit: true }
    },
  })
}

/** A module with some exports observed; its other exports are the originals. */
function observedModule(url: string, names: readonly string[]): string {
  const lines = [
    `import * as original from ${JSON.stringify(url)}`,
    `export * from ${JSON.stringify(url)}`,
    `const observe = globalThis[Symbol.for(${JSON.stringify(Symbol.keyFor(OBSERVERS))})]`,
    ...names.map(name => `export const ${name} = observe.${name}(original.${name})`),
  ]
  return `data:text/javascript,${encodeURIComponent(lines.join('\n'))}`
}

type Observer<Original> = (original: Original) => Original

function observers(recorder: Recorder) {
  const startContext = new AsyncLocalStorage<{ metrics?: Metrics }>()
  return {
    generateCode: recordResult<typeof generateCode>('login code'),
    refreshToken: recordResult<typeof refreshToken>('refresh token'),
    pageCookie: recordResult<typeof pageCookie>('session cookie'),
    newAppSecret: recordResult<typeof newAppSecret>('app secret'),
    randomToken: recordResult<typeof randomToken>('random token'),

    newApiKey: ((original: typeof newApiKey) =>
      (...args) => {
        const newKey = original(...args)
        recorder.secret('API key', newKey.key)
        return newKey
      }) satisfies Observer<typeof newApiKey>,

    mailedLink: ((original: typeof mailedLink) => (url, args) => {
      recorder.secret('link token', args.token)
      return original(url, args)
    }) satisfies Observer<typeof mailedLink>,

    createSend: ((original: typeof createSend) => deps => {
      const send = original(deps)
      return async (...args) => {
        const sentLink = await send(...args)
        recorder.secret('login id', sentLink.loginId)
        return sentLink
      }
    }) satisfies Observer<typeof createSend>,

    createJwt: ((original: typeof createJwt) => deps => {
      const jwt = original(deps)
      const sign: typeof jwt.sign = (typ, claims) => {
        const token = jwt.sign(typ, claims)
        recorder.secret('access token', token)
        return token
      }
      const signAs: typeof jwt.signAs = async (...args) => {
        const token = await jwt.signAs(...args)
        const typ = args[1]
        recorder.secret(typ === 'agent_ws' ? 'agent token' : `token of the type ${typ}`, token)
        return token
      }
      return { ...jwt, sign, signAs }
    }) satisfies Observer<typeof createJwt>,

    createSecrets: ((original: typeof createSecrets) => roots => {
      for (const root of roots) recorder.secret('KEYWAY_SECRET', root)
      const secrets = original(roots)
      return {
        ...secrets,
        seal(purpose, plaintext, context) {
          if (SEALED_SECRETS.includes(purpose)) recorder.secret(purpose, plaintext)
          return secrets.seal(purpose, plaintext, context)
        },
        mac(purpose, message) {
          const mac = secrets.mac(purpose, message)
          // The part before the dot only names the KEYWAY_SECRET that made the MAC.
          if (!PUBLIC_MACS.includes(purpose))
            recorder.secret(`${purpose} MAC`, mac.slice(mac.indexOf('.') + 1))
          return mac
        },
      }
    }) satisfies Observer<typeof createSecrets>,

    loadConfig: ((original: typeof loadConfig) => environment => {
      recordSettings(recorder, environment)
      return original(environment)
    }) satisfies Observer<typeof loadConfig>,

    guardConnections: ((original: typeof guardConnections) => (server, isNoisy, above) =>
      original(
        server,
        isNoisy,
        above === NOISY_REFUSED_ABOVE ? Number.MAX_SAFE_INTEGER : above,
      )) satisfies Observer<typeof guardConnections>,

    createLog: ((original: typeof createLog) => (level, destination, now) => {
      const log = original(level, destination, now)
      const debugLog = original('debug', { write: line => recorder.output('log', line) })
      const logBoth =
        (name: keyof Log): Log[typeof name] =>
        (fields, message) => {
          debugLog[name](fields, message)
          log[name](fields, message)
        }
      return {
        debug: logBoth('debug'),
        info: logBoth('info'),
        warn: logBoth('warn'),
        error: logBoth('error'),
      }
    }) satisfies Observer<typeof createLog>,

    createMetrics: ((original: typeof createMetrics) =>
      (...deps) => {
        const metrics = original(...deps)
        const startedServer = startContext.getStore()
        if (startedServer) startedServer.metrics = metrics
        return metrics
      }) satisfies Observer<typeof createMetrics>,

    startServer: ((original: typeof startServer) => (config, options) => {
      const startedServer: { metrics?: Metrics } = {}
      return startContext.run(startedServer, async () => {
        const server = await original(config, options)
        let closing: Promise<void> | undefined
        const close = () => {
          closing ??= scrape(startedServer.metrics).then(() => server.close())
          return closing
        }
        return { ...server, close, [Symbol.asyncDispose]: close }
      })
    }) satisfies Observer<typeof startServer>,
  }

  function recordResult<Make extends (...args: never[]) => string>(kind: string) {
    return (original: Make) =>
      ((...args) => {
        const secret = original(...args)
        recorder.secret(kind, secret)
        return secret
      }) as Make
  }

  async function scrape(metrics: Metrics | undefined): Promise<void> {
    const rendering = metrics?.render().then(
      ({ body }) => recorder.output('metrics', body),
      () => {},
    )
    await Promise.race([
      rendering,
      new Promise(resolve => unmockedSetTimeout(resolve, SCRAPE_TIMEOUT_MS).unref()),
    ])
  }
}

const SECRET_SETTINGS = /^KEYWAY_(SECRET|DATABASE_URL|EVENTS_URL|MAIL_URL|MAIL_HOOK_SECRET)(_FILE)?$/

function recordSettings(recorder: Recorder, environment: Record<string, string | undefined>): void {
  for (const [name, text = ''] of Object.entries(environment))
    for (const secret of configuredSecrets(name, text)) recorder.secret(name.replace(/_FILE$/, ''), secret)
}

/** The secret parts of a setting. Those of a URL are its password, or a key in place of its host. */
function configuredSecrets(name: string, text: string): string[] {
  if (!SECRET_SETTINGS.test(name)) return []
  const value = name.endsWith('_FILE') ? contentOf(text) : text
  if (!name.includes('_URL')) return value.split(',')
  const [, scheme, rest = ''] = /^(\w+):\/\/(.*)$/.exec(value) ?? []
  if (scheme === 'resend' || scheme === 'postmark') return [rest]
  const password = /^[^:@/]*:([^@/]*)@/.exec(rest)?.[1] ?? ''
  return [password, decodeUri(password)]
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
