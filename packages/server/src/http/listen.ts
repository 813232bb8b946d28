import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'
import { type Config, ConfigError } from '../config.ts'

/** A port that the system picked, on which nothing is served yet. */
export interface HeldPort {
  /** The settings with this port instead of port 0. */
  config: Config
  /** Listens on it, so that no other process gets it, and closes every connection at once. */
  holder: NetServer
}

/**
 * With port 0 the system picks one. Links and tokens name it, so it is known before anything else starts, and held
 * until `listen` takes it over: migrations may take a while, and a port that is free now is another's a moment later.
 */
export async function holdFreePort(config: Config): Promise<HeldPort> {
  const holder = createServer(socket => socket.destroy())
  await take(holder, () => holder.listen(0, config.host), config)
  const { port } = holder.address() as AddressInfo
  const renamed = (url: string) => url.replace(/^http:\/\/localhost:0(?=\/|$)/, `http://localhost:${port}`)
  return {
    config: { ...config, port, publicUrl: renamed(config.publicUrl), verifyUrl: renamed(config.verifyUrl) },
    holder,
  }
}

/**
 * Takes the port that the settings name, or the listening socket of the one that is held already.
 *
 * @throws ConfigError where it is taken or cannot be had
 */
export async function listen(server: Server, config: Config, holder?: NetServer): Promise<void> {
  await take(server, () => (holder ? server.listen(holder) : server.listen(config.port, config.host)), config)
}

async function take(server: NetServer, start: () => void, { host, port }: Config): Promise<void> {
  start()
  try {
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new ConfigError([
        `Port ${port} on ${host} is taken. Stop what listens there, or set KEYWAY_PORT=8081.`,
      ])
    }
    throw new ConfigError([
      `Keyway cannot listen on ${host}:${port} (${code}). Check KEYWAY_HOST and KEYWAY_PORT.`,
    ])
  }
}
