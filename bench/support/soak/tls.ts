import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { makeCertificate } from '../../../packages/server/test/ops/certificate.ts'
import { startTlsProxy } from '../../../packages/server/test/ops/tls-proxy.ts'
import { freePort } from '../../../packages/server/test/support/free-port.ts'
import { until } from '../../../packages/server/test/support/patience.ts'

export const TLS_PROXIES = ['node', 'caddy'] as const
/** What terminates TLS: a proxy of Node's `https` in this process, or Caddy, as `deploy/production` sets it up. */
export type TlsProxy = (typeof TLS_PROXIES)[number]

/**
 * Starts a TLS proxy with a port for each port of the service, and makes this process trust its certificate.
 *
 * @returns the ports, in the same order
 */
export async function startTls(
  proxy: TlsProxy,
  servicePorts: number[],
  stack: AsyncDisposableStack,
): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-tls-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const certificate = await makeCertificate(folder)
  setDefaultCACertificates([...getCACertificates('default'), certificate.cert])
  if (proxy === 'caddy') return startCaddy(folder, servicePorts, stack)
  const after = (close: () => void) => stack.defer(close)
  return Promise.all(
    servicePorts.map(async port => (await startTlsProxy({ after }, certificate, () => port)).port),
  )
}

async function startCaddy(folder: string, servicePorts: number[], stack: AsyncDisposableStack) {
  const ports = await Promise.all(servicePorts.map(freePort))
  const sites = ports.map(
    (port, n) => `https://localhost:${port} {
	tls ${folder}/cert.pem ${folder}/key.pem
	header Strict-Transport-Security "max-age=63072000"
	request_body {
		max_size 300KB
	}
	reverse_proxy 127.0.0.1:${servicePorts[n]} {
		flush_interval -1
		header_down -Strict-Transport-Security
	}
}
`,
  )
  // No HTTP/3, since `freePort` reserves a port by a UDP socket on it.
  const options = `{
	admin off
	auto_https disable_redirects
	skip_install_trust
	servers {
		protocols h1 h2
	}
}
`
  writeFileSync(join(folder, 'Caddyfile'), options + sites.join(''))
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const args = ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
  const caddy = spawn('caddy', args, { env, stdio: 'ignore' })
  const caddyFailure = once(caddy, 'exit').then(() => {
    throw new Error('Caddy ended, or is not installed')
  })
  stack.defer(async () => {
    caddy.kill('SIGTERM')
    await caddyFailure.catch(() => {})
  })
  await Promise.race([caddyFailure, ...ports.map(port => until('Caddy listens', () => isListening(port)))])
  return ports
}

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}
