import { WebSocket } from 'ws'
import { Agent } from '../../src/agent.ts'
import type { AgentOptions } from '../../src/agent-options.ts'
import type { WebSocketConstructor } from '../../src/hub-connection.ts'
import { createManualClock, type ManualClock } from './manual-clock.ts'
import { type ProtocolServer, type ServerEnd, startProtocolServer, TEST_KEY } from './protocol-server.ts'
import { type RecordedEvents, record } from './recorder.ts'

export interface TestAgent {
  server: ProtocolServer
  agent: Agent
  events: RecordedEvents
  clock: ManualClock
}

interface TestContext {
  after(fn: () => Promise<void> | void): void
}

/** The platform's WebSocket, or that of `ws`. */
export const platformWebSocket = (globalThis.WebSocket ?? WebSocket) as unknown as WebSocketConstructor

/** Starts an agent and a scripted service for it; `script` runs before the agent dials. */
export async function startAgent(
  t: TestContext,
  options: AgentOptions = {},
  script: (server: ProtocolServer) => void = () => {},
): Promise<TestAgent> {
  const server = await startProtocolServer(t)
  script(server)
  const clock = createManualClock()
  const baseOptions = { url: server.url, apiKey: TEST_KEY, clock, WebSocket: platformWebSocket }
  const agent = new Agent({ ...baseOptions, ...options })
  t.after(() => agent.close())
  return { server, agent, events: record(agent), clock }
}

/** Like `startAgent`; waits until the agent is connected, and also returns the server's end of the connection. */
export async function startConnected(
  t: TestContext,
  options: AgentOptions = {},
  script?: (server: ProtocolServer) => void,
): Promise<TestAgent & { serverEnd: ServerEnd }> {
  const testAgent = await startAgent(t, options, script)
  const serverEnd = await testAgent.server.connections.next()
  await testAgent.events.ready.next()
  return { ...testAgent, serverEnd }
}
