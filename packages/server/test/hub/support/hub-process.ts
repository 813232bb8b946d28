import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Commands, Measurement } from './hub-process-child.ts'

/** A hub in a process of its own, so that heap and open files of the clients are not counted. */
export interface HubProcess extends AsyncDisposable {
  url: string
  port: number
  /** Issues agent tokens, in turn for one key of each of `users` users. Later calls use the same keys. */
  tokens(count: number, users: number): Promise<string[]>
  /** Advances the hub's clock, which also runs by itself. */
  advance(ms: number): Promise<void>
  /** Measures after a garbage collection. */
  measure(): Promise<Measurement>
}

export async function startHubProcess(): Promise<HubProcess> {
  const child = fork(new URL('./hub-process-child.ts', import.meta.url), {
    execArgv: ['--expose-gc'],
    serialization: 'advanced',
  })
  const childFailure = once(child, 'exit').then(([status]) => {
    throw new Error(`the hub's process ended with ${status}`)
  })
  childFailure.catch(() => {})
  const [{ port }] = (await Promise.race([once(child, 'message'), childFailure])) as [{ port: number }]
  let calls = 0
  const call = async <Name extends keyof Commands>(
    name: Name,
    ...input: Parameters<Commands[Name]>
  ): Promise<Awaited<ReturnType<Commands[Name]>>> => {
    const id = ++calls
    child.send({ id, name, input })
    return Promise.race([responseTo<Awaited<ReturnType<Commands[Name]>>>(child, id), childFailure])
  }
  return {
    url: `ws://127.0.0.1:${port}/hub`,
    port,
    tokens: (count, users) => call('tokens', count, users),
    advance: ms => call('advance', ms),
    measure: () => call('measure'),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

function responseTo<Answer>(child: ChildProcess, id: number): Promise<Answer> {
  return new Promise(resolve => {
    const onMessage = (message: { id: number; answer: Answer }) => {
      if (message.id !== id) return
      child.off('message', onMessage)
      resolve(message.answer)
    }
    child.on('message', onMessage)
  })
}
