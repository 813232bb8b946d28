import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { freePort } from './free-port.ts'
import { skipWithout } from './missing-servers.ts'
import { until } from './patience.ts'

export interface TestRedis {
  url: string
  /** Kills the server; events in transit are lost. */
  kill(): Promise<void>
  /** Restarts the server on the same port, without data. */
  start(): Promise<void>
  /** Sends these commands over one connection, which stays open until the server stops. */
  command(...commands: string[]): Promise<void>
}

/** The program of Redis, or else of Valkey; null if neither is installed. */
function findServer(): string | null {
  return ['redis-server', 'valkey-server'].find(name => spawnSync(name, ['--version']).status === 0) ?? null
}

/** The value of `skip` for tests with Redis; see missing-servers.ts. */
export function redisMissing(): string | false {
  return skipWithout(findServer() !== null, 'neither redis-server nor valkey-server is installed here')
}

/** Starts a server without persistence, stopped after the test. */
export async function startRedis(t?: TestContext): Promise<TestRedis> {
  const program = findServer()
  if (!program) throw new Error('redis-server is not installed')
  const port = await freePort()
  let server: ChildProcess | null = null
  let control: Socket | null = null
  const redis: TestRedis = {
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      if (!server || server.exitCode !== null || server.signalCode !== null) return
      const exited = once(server, 'exit')
      server.kill('SIGKILL')
      await exited
    },
    async start() {
      const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
      server = spawn(program, settings, { stdio: 'ignore' })
      await until('redis-server answers', () => acceptsConnections(port))
    },
    async command(...commands) {
      control ??= connect(port, '127.0.0.1')
      for (const command of commands) {
        control.write(`${command}\r\n`)
        const [reply] = await once(control, 'data')
        if (!/^[+:]/.test(String(reply))) throw new Error(`${command}: ${reply}`)
      }
    },
  }
  await redis.start()
  t?.after(() => {
    control?.destroy()
    return redis.kill()
  })
  return redis
}

async function acceptsConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
