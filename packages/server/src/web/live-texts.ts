/** Texts of the page of a new key and of the live view, which shows its agent. */
export const liveTexts = {
  title: (name: string) => `Live: ${name}`,
  lead: 'What this key’s agent does now.',
  back: 'The key',
  watch: 'Live view',
  waiting: 'Waiting for your first agent…',
  nobody: 'No agent is connected now.',
  waitingLead: 'It shows here the moment it connects.',
  waitingElsewhere: 'Scripts are off, so this page cannot follow it. The live view can:',
  open: 'Open the live view',
  help: 'Nothing happens?',
  helpNow: 'No agent has connected yet. Below is what to check.',
  check: (address: string) => [
    'Was the whole line pasted, with the key in it, and did the terminal print an error?',
    `Does that machine reach this service? ${address} has to open there.`,
    'Is its Node 20.16 or newer? “node --version” says so.',
  ],
  checkNetworks: (networks: string) => `Is it in one of the networks of this key: ${networks}?`,
  again: 'Copy the line again',
  live: 'Connected. Your agent is live.',
  liveMany: (count: number) => `Connected: ${count} agents are live with this key.`,
  reconnecting: 'Reconnecting…',
  host: 'Host',
  program: 'Program',
  connection: 'Connection',
  since: 'Connected',
  latency: 'Latency',
  notMeasured: 'say hello to measure',
  milliseconds: (count: number) => `${count} ms`,
  hello: 'Say hello',
  helloTo: 'to',
  answered: (ms: number) => `It answered after ${ms} ms:`,
  noHandler: (ms: number) =>
    `It got the message: its answer came after ${ms} ms and says that it answers no requests yet.`,
  failed: (ms: number, message: string) => `It answered with an error after ${ms} ms: ${message}`,
  silent: (seconds: number) => `It got the message, and gave no answer within ${seconds} seconds.`,
  gone: 'That connection has already ended.',
  more: (count: number) => `and ${count} more`,
  revoke: 'Revoke',
  revokeLead: 'Ends the key and its connections for good.',
  revokeNow: 'Revoke this key',
  closedAfter: (count: number, ms: number) =>
    count === 1
      ? `Revoked. The connection was closed after ${ms} ms.`
      : `Revoked. ${count} connections were closed after ${ms} ms.`,
  closing: 'Revoked. The connection is being closed.',
  revoked: 'Revoked. No agent is connected.',
  ended: 'This key no longer works.',
  endedLead: 'Its agent was told why and does not come back.',
  allKeys: 'All keys',
  lookAgain: 'Look again',
} as const

/** Ways to run an agent with a new key. */
export const runTexts = {
  title: 'Connect an agent',
  ways: 'Run it with',
  node: 'Node',
  nodeLead: 'Paste this line into a terminal. It needs Node 20.16 or newer.',
  powerShell: 'The same for PowerShell',
  python: 'Python',
  pythonLead: 'Install the package once, best in a virtual environment. It needs Python 3.10 or newer.',
  pythonRun: 'Then run an agent:',
  curl: 'curl',
  curlLead:
    'Exchanges the key for a token, as every agent does first. To stay connected takes a WebSocket client: the hub is at',
  docker: 'Docker',
  dockerLead: 'Runs the same agent in a container, which is removed when it ends.',
  noAgent: 'This key connects no agent: it lacks the scope agent:connect.',
  api: 'Call the API',
  apiLead: 'The key is sent as a bearer token.',
  watch: 'See it live',
} as const

/** Texts of the page of all agents. */
export const agentTexts = {
  title: 'Agents',
  lead: 'Your live connections, on all nodes. This page keeps itself up to date.',
  empty: 'No agent is connected',
  emptyLead: 'Create a key and run the line that comes with it. The agent appears here by itself.',
  disconnect: 'Disconnect',
  disconnectTitle: (name: string) => `Disconnect ${name}?`,
  comesBack:
    'Its connection ends, and it connects again by itself within seconds, since its key is active. To keep it out, revoke the key.',
  disconnectNow: 'Disconnect',
  revokeKey: 'Revoke its key…',
  keep: 'Keep it',
  connection: 'connection',
  host: 'From',
  test: 'Say hello',
  testTo: 'to',
  since: 'Connected',
  unknownClient: 'Unknown program',
  count: (count: number) =>
    count === 1 ? 'One agent is connected now.' : `${count} agents are connected now.`,
} as const
