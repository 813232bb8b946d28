import { connect, type Socket } from 'node:net'
import { ATTACKS, type Attack, type AttackJob, type AttackResult } from './attacks.ts'
import { serveJobs } from './child.ts'

/* The attacker, a process of its own: runs one attack of attacks.ts until it is stopped. */

let stop = () => {}

serveJobs(async (order: AttackJob | 'stop') => {
  if (order !== 'stop') return run(order)
  stop()
  return undefined
})

async function run(order: AttackJob): Promise<AttackResult> {
  const answers: Record<string, number> = {}
  const stopped = new Promise<void>(resolve => {
    stop = resolve
  })
  let running = true
  void stopped.then(() => {
    running = false
  })
  const sockets = new Set<Socket>()
  let opened = 0
  const attack: Attack = {
    order,
    stopped,
    get running() {
      return running
    },
    count(what) {
      answers[what] = (answers[what] ?? 0) + 1
    },
    open(address, onOpen) {
      opened++
      const socket = connect({ port: order.port, host: '127.0.0.1', localAddress: address, noDelay: true })
      sockets.add(socket)
      socket.on('connect', () => onOpen(socket))
      socket.on('error', error => attack.count((error as NodeJS.ErrnoException).code ?? 'error'))
      socket.on('close', () => sockets.delete(socket))
      return socket
    },
  }
  const working = ATTACKS[order.attack]!.run(attack)
  await stopped
  for (const socket of sockets) socket.destroy()
  await Promise.race([working, new Promise(resolve => setTimeout(resolve, 2000))])
  return { answers, opened }
}
