import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, createServer as createProbe } from 'node:net'
import { type Config, ConfigError } from '../config.ts'

/** Takes the port that the settings name. @throws ConfigError where it is taken or cannot be had */
export async function listen(server: Server, { host, port }: Config): Promise<void> {
  server.listen(port, host)
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

/** With port 0 the system picks one; links and tokens must name it, so it is known before anything else. */
export async function withFreePort(config: Config): Promise<Config> {
  const probe = createProbe().listen(0, config.host)
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  const renamed = (url: string) => url.replace(/^http:\/\/localhost:0(?=\/|$)/, `http://localhost:${port}`)
  return { ...config, port, publicUrl: renamed(config.publicUrl), verifyUrl: renamed(config.verifyUrl) }
}
