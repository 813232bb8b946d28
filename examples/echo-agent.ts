import { Agent } from '@keyway/sdk'

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
  if (from !== 'api') agent.send(from, { echo: data }).catch(error => console.error(error.message))
})
