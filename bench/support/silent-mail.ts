import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

/**
 * A mail server that accepts connections and never responds, so that after the first concurrent deliveries no mail is
 * rendered while requests are measured: rendering and sending a mail costs more than the request that queued it.
 */
export async function startSilentMail(): Promise<AsyncDisposable & { settings: Record<string, string> }> {
  const server = createServer(socket => socket.on('error', () => {}).unref())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    settings: {
      KEYWAY_MAIL_URL: `smtp://127.0.0.1:${port}`,
      KEYWAY_SUPPORT_EMAIL: 'support@example.com',
      KEYWAY_MAIL_FROM: 'Keyway <no-reply@example.com>',
    },
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}
