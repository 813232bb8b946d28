import { Agent, type Json } from '@keyway/sdk'

// Reads KEYWAY_URL and KEYWAY_API_KEY.
const agent = new Agent()

agent.on('ready', ({ connectionId }) => console.log(`connected as ${connectionId}`))
agent.on('disconnected', ({ reason, willReconnect }) =>
  console.log(`disconnected: ${reason}`, { willReconnect }),
)
agent.on('stopped', ({ error }) => {
  if (error) console.error(error.message)
  process.exitCode = error ? 77 : 0
})
process.once('SIGINT', () => agent.close())

agent.on('message', ({ from, data }) => {
  console.log(from, data)
  // A message from the API has no agent to answer, and two echo agents would answer each other forever.
  if (from === 'api' || isEcho(data)) return
  // Refused, for example, with a key without the scope agents:send.
  agent.send(from, { echo: data }).catch(error => console.error(error.message))
})

function isEcho(data: Json): boolean {
  return typeof data === 'object' && data !== null && 'echo' in data
}
