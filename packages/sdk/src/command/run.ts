import { hostname } from 'node:os'
import process from 'node:process'
import { Agent } from '../agent.ts'
import { environment } from '../environment.ts'
import { KeywayError } from '../errors.ts'
import { createCredentials } from './credentials.ts'
import { EXIT } from './node-process.ts'
import { serviceUrl } from './service-url.ts'

/** A demo agent: connects, prints its events, echoes messages, and answers requests. */
export function run(urlOption: string | undefined): void {
  const credentials = createCredentials()
  const url = serviceUrl(urlOption, credentials.latest)
  const apiKey = environment('KEYWAY_API_KEY') ?? credentials.find(url)?.key
  if (!apiKey) throw missingKeyError(url)
  const agent = new Agent({ url, apiKey })
  agent
    .on('ready', ({ connectionId, keyName }) =>
      log(`ready: connection ${connectionId}, key ${keyName ?? '(unnamed)'}`),
    )
    .on('renewed', ({ expiresIn }) => log(`renewed: good for ${expiresIn} s`))
    .on('disconnected', ({ code, reason, willReconnect, retryInMs = 0 }) => {
      const nextStep = willReconnect
        ? `trying again in ${(retryInMs / 1000).toFixed(1)} s`
        : 'not coming back'
      log(`disconnected: ${code} ${reason}, ${nextStep}`)
    })
    .on('message', ({ from, data }) => {
      log(`message from ${from}: ${JSON.stringify(data)}`)
      // Messages sent over HTTP have no connection to reply to, and echoing an echo would loop forever.
      if (from !== 'api' && !isEcho(data))
        agent.send(from, { echo: data }).catch(error => log(`not sent: ${error.message}`))
    })
    .onRequest(({ from, data }) => {
      log(`request from ${from.startsWith('api') ? 'api' : from}: ${JSON.stringify(data)}`)
      return `Hello from ${hostname()}, Node ${process.version}`
    })
    .on('stopped', ({ error }) => {
      log(error ? `stopped: ${error.message}` : 'stopped')
      process.exitCode = error ? EXIT.stoppedForGood : 0
    })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => agent.close())
}

function missingKeyError(url: string): KeywayError {
  const detail = `This machine has no key for ${url}. Run the command "login", or set KEYWAY_API_KEY.`
  return new KeywayError('invalid_configuration', detail)
}

function log(text: string): void {
  console.log(`${new Date().toISOString()} ${text}`)
}

function isEcho(data: unknown): boolean {
  return typeof data === 'object' && data !== null && 'echo' in data
}
