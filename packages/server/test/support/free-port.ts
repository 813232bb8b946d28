import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below what systems hand out by themselves (Linux: from 32768), so that between the look and its use no connection of
 * another test gets the same one.
 */
const [LOWEST, HIGHEST] = [10_000, 32_000]

/** A port of this machine that nobody listens on, for a server that must know it before it starts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST))
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const listening = once(probe.listen(port, '127.0.0.1'), 'listening')
  const free = await listening.then(
    () => true,
    () => false,
  )
  if (free) await new Promise(resolve => probe.close(resolve))
  return free
}
