import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the ephemeral ports (from 32768 on Linux), so that no connection of another test is assigned the port before it
 * is used.
 */
const [LOWEST, HIGHEST] = [10_000, 32_000]

/** A free port of this machine, for a server that must know its port before it starts. */
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
