import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../administration/finding.ts'
import type { Config } from '../config.ts'
import { isOpenToOthers } from '../folders.ts'
import { isLoopbackHost } from '../network.ts'
import type { Services } from '../services.ts'

const REQUEST_TIMEOUT_MS = 5000

/** Runs a check, which resolves with its result, or rejects with an error that says what to do. */
export async function findingOf(check: string, run: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await run() }
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message }
  }
}

/**
 * Checks that only the owner may read the data directory, which with SQLite contains the database and the secret. Makes
 * no finding with PostgreSQL.
 */
export async function checkDataDir(config: Config): Promise<Finding[]> {
  if (config.database.engine !== 'sqlite') return []
  const { dataDir } = config
  const exposedPaths = [dataDir, ...readdirSync(dataDir).map(name => join(dataDir, name))].filter(
    isOpenToOthers,
  )
  const detail =
    exposedPaths.length === 0
      ? `only its owner can read ${dataDir}`
      : `others on this machine can read ${exposedPaths.join(' and ')}: run chmod -R go= ${dataDir}`
  return [{ check: 'data directory', ok: exposedPaths.length === 0, detail }]
}

/** Requests the public URL like a client, and finds whether this service answers, and which checks of /readyz fail. */
export async function checkPublicUrl({ config, signingKeys }: Services): Promise<Finding[]> {
  let readiness: { checks: { name: string; ok: boolean; detail?: string }[] } | null = null
  const urlFinding = await findingOf('public URL', async () => {
    const publishedJwks = (await fetchJson(`${config.publicUrl}/.well-known/jwks.json`)) as {
      keys?: { kid: string }[]
    }
    const ownKeyIds = new Set(signingKeys.jwks().keys.map(({ kid }) => kid))
    if (!publishedJwks.keys?.some(({ kid }) => ownKeyIds.has(kid)))
      throw new Error(
        `${config.publicUrl} answers, but it is another service: its signing keys differ. Check DNS and the proxy, or KEYWAY_PUBLIC_URL`,
      )
    readiness = (await fetchJson(`${config.publicUrl}/readyz`)) as typeof readiness
    return `${config.publicUrl} is this service`
  })
  const checks: { name: string; ok: boolean; detail?: string }[] =
    (readiness as { checks: { name: string; ok: boolean; detail?: string }[] } | null)?.checks ?? []
  const failedChecks = checks.filter(({ ok }) => !ok)
  return [
    urlFinding,
    ...failedChecks.map(({ name, detail }) => ({
      check: `readiness, ${name.replaceAll('_', ' ')}`,
      ok: false,
      detail: detail ?? 'not ready',
    })),
  ]
}

async function fetchJson(url: string): Promise<unknown> {
  const options = {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    redirect: 'manual' as const,
  }
  const response = await fetch(url, options).catch((error: Error) => {
    const { code } = (error.cause ?? error) as NodeJS.ErrnoException
    throw new Error(
      `${url} does not answer (${code ?? error.name}). Check that the service runs and that the name resolves to it. For TLS errors, check the proxy's certificate`,
    )
  })
  const body = await response.json().catch(() => null)
  if (body === null || typeof body !== 'object')
    throw new Error(
      `${url} answers ${response.status}, which is not a response of this service. Check the proxy's routes`,
    )
  return body
}

/** Finds mistakes in the settings about proxies. /readyz reports those that only requests reveal. */
export function checkProxies(config: Config): Finding[] {
  const check = 'proxies'
  const { protocol, hostname } = new URL(config.publicUrl)
  const universalNetworks = config.trustedProxies.filter(cidr => cidr.endsWith('/0'))
  if (universalNetworks.length > 0) {
    const detail = `KEYWAY_TRUSTED_PROXIES=${universalNetworks.join(',')} lets every client choose its own address, and so evade every limit: list only your proxies`
    return [{ check, ok: false, detail }]
  }
  if (protocol === 'https:' && !isLoopbackHost(hostname) && config.trustedProxies.length === 0) {
    const detail =
      'the public URL is https, so a proxy terminates TLS, but KEYWAY_TRUSTED_PROXIES is empty: all clients count as one address. Set it to the address of the proxy, for example 127.0.0.1'
    return [{ check, ok: false, detail }]
  }
  const detail =
    config.trustedProxies.length > 0
      ? `X-Forwarded-For is used from ${config.trustedProxies.join(', ')}`
      : 'none are trusted; clients connect directly'
  return [{ check, ok: true, detail }]
}
