import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'
import { type Config, ConfigError } from '../config.ts'

/** A port that is bound but not served yet. */
export interface HeldPort {
  /** The settings with this port instead of port 0, also in their URLs. */
  config: Config
  /** The listening server, which closes every connection immediately. */
  holder: NetServer
}

/**
 * Binds a free port, for settings with port 0. Must be called before anything else starts, since links and tokens
 * contain the port. It is held until `listen` takes it over, so that no other process gets it during migrations.
 *
 * @throws ConfigError if the host cannot be listened on
 */
export async function holdFreePort(config: Config): Promise<HeldPort> {
  const holder = createServer(socket => socket.destroy())
  await startListening(holder, () => holder.listen(0, config.host), config)
  const { port } = holder.address() as AddressInfo
  const replacePort = (url: string) =>
    url.replace(/^http:\/\/localhost:0(?=\/|$)/, `http://localhost:${port}`)
  return {
    config: {
      ...config,
      port,
      publicUrl: replacePort(config.publicUrl),
      verifyUrl: replacePort(config.verifyUrl),
    },
    holder,
  }
}

/**
 * Listens on the configured host and port, or on the socket of `holder`, which holds the port already.
 *
 * @throws ConfigError if the port is in use, or cannot be listened on for any other reason
 */
export async function listen(server: Server, config: Config, holder?: NetServer): Promise<void> {
  await startListening(
    server,
    () => (holder ? server.listen(holder) : server.listen(config.port, config.host)),
    config,
  )
}

async function startListening(server: NetServer, start: () => void, { host, port }: Config): Promise<void> {
  start()
  try {
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new ConfigError([
        `Port ${port} on ${host} is in use. Stop the process that listens there, or set KEYWAY_PORT=8081.`,
      ])
    }
    throw new ConfigError([
      `Keyway cannot listen on ${host}:${port} (${code}). Check KEYWAY_HOST and KEYWAY_PORT.`,
    ])
  }
}
