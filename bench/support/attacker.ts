import { connect, type Socket } from 'node:net'
import { ATTACKS, type Attack, type AttackJob, type AttackResult } from './attacks.ts'
import { serveJobs } from './child.ts'

/* The attacker, a process of its own: runs one attack of attacks.ts until it is stopped. */

let stop = () => {}

serveJobs(async (job: AttackJob | 'stop') => {
  if (job !== 'stop') return run(job)
  stop()
  return undefined
})

async function run(job: AttackJob): Promise<AttackResult> {
  const answers: Record<string, number> = {}
  const stopped = new Promise<void>(resolve => {
    stop = resolve
  })
  let isRunning = true
  void stopped.then(() => {
    isRunning = false
  })
  const sockets = new Set<Socket>()
  let openedCount = 0
  const attack: Attack = {
    job,
    stopped,
    get running() {
      return isRunning
    },
    count(what) {
      answers[what] = (answers[what] ?? 0) + 1
    },
    open(address, onOpen) {
      openedCount++
      const socket = connect({ port: job.port, host: '127.0.0.1', localAddress: address, noDelay: true })
      sockets.add(socket)
      socket.on('connect', () => onOpen(socket))
      socket.on('error', error => attack.count((error as NodeJS.ErrnoException).code ?? 'error'))
      socket.on('close', () => sockets.delete(socket))
      return socket
    },
  }
  const pendingAttack = ATTACKS[job.attack]!.run(attack)
  await stopped
  for (const socket of sockets) socket.destroy()
  await Promise.race([pendingAttack, new Promise(resolve => setTimeout(resolve, 2000))])
  return { answers, opened: openedCount }
}
