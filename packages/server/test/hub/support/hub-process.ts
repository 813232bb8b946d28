import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Measured, Orders } from './hub-process-child.ts'

/** A hub in a process of its own: its heap is not the client's, nor are its open files. */
export interface HubProcess extends AsyncDisposable {
  url: string
  port: number
  /** Agent tokens of `users` new people with a key each, in turn; later calls renew for the same people. */
  tokens(count: number, users: number): Promise<string[]>
  /** Its time runs by itself; this moves it ahead. */
  advance(ms: number): Promise<void>
  /** After a garbage collection. */
  measure(): Promise<Measured>
}

export async function startHubProcess(): Promise<HubProcess> {
  const child = fork(new URL('./hub-process-child.ts', import.meta.url), {
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
  })
  const failed = once(child, 'exit').then(([status]) => {
    throw new Error(`the hub's process ended with ${status}`)
  })
  failed.catch(() => {})
  const [{ port }] = (await Promise.race([once(child, 'message'), failed])) as [{ port: number }]
  let orders = 0
  const ask = async <Name extends keyof Orders>(
    name: Name,
    ...input: Parameters<Orders[Name]>
  ): Promise<Awaited<ReturnType<Orders[Name]>>> => {
    const id = ++orders
    child.send({ id, name, input })
    return Promise.race([answerTo<Awaited<ReturnType<Orders[Name]>>>(child, id), failed])
  }
  return {
    url: `ws://127.0.0.1:${port}/hub`,
    port,
    tokens: (count, users) => ask('tokens', count, users),
    advance: ms => ask('advance', ms),
    measure: () => ask('measure'),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

function answerTo<Answer>(child: ChildProcess, id: number): Promise<Answer> {
  return new Promise(resolve => {
    const hear = (message: { id: number; answer: Answer }) => {
      if (message.id !== id) return
      child.off('message', hear)
      resolve(message.answer)
    }
    child.on('message', hear)
  })
}
