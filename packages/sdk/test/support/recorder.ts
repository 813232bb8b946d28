import type { Agent } from '../../src/agent.ts'
import type { AgentEvents } from '../../src/agent-options.ts'
import { Queue } from './queue.ts'

export type RecordedEvents = { [Name in keyof AgentEvents]: Queue<AgentEvents[Name]> }

export function record(agent: Agent): RecordedEvents {
  const events: RecordedEvents = {
    ready: new Queue(),
    message: new Queue(),
    disconnected: new Queue(),
    gap: new Queue(),
    renewed: new Queue(),
    stopped: new Queue(),
  }
  agent
    .on('ready', event => events.ready.push(event))
    .on('message', event => events.message.push(event))
    .on('disconnected', event => events.disconnected.push(event))
    .on('gap', event => events.gap.push(event))
    .on('renewed', event => events.renewed.push(event))
    .on('stopped', event => events.stopped.push(event))
  return events
}
