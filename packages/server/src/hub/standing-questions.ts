import { setTimeout as wait } from 'node:timers/promises'
import type { HubQuestions, Standing } from './hub-questions.ts'

/** Keys of one question. */
const MAX_KEYS_PER_QUESTION = 500
const RETRY_MS = 500

export interface StandingQuestions {
  /**
   * How a key stands at some moment after this call; undefined for an unknown one. All who ask in one turn of
   * the event loop share one question. While the database does not answer it is asked again: whoever waits is
   * let go by their own deadline.
   */
  ask(keyId: string): Promise<Standing | undefined>
  /** The same for a connection that is filed under the key; asks again when the key changed meanwhile. */
  askFor(connection: { askAgain: boolean }, keyId: string): Promise<Standing | undefined>
  /** All waiting questions stay unanswered for ever. */
  stop(): void
}

type Answer = (standing: Standing | undefined) => void

export function createStandingQuestions(questions: Pick<HubQuestions, 'standing'>): StandingQuestions {
  let waiting = new Map<string, Answer[]>()
  let stopped = false

  return {
    ask,
    async askFor(connection, keyId) {
      for (;;) {
        connection.askAgain = false
        const standing = await ask(keyId)
        if (!connection.askAgain) return standing
      }
    },
    stop() {
      stopped = true
      waiting.clear()
    },
  }

  function ask(keyId: string): Promise<Standing | undefined> {
    return new Promise(resolve => {
      if (waiting.size === 0) setImmediate(askAll)
      const answers = waiting.get(keyId)
      if (answers) answers.push(resolve)
      else waiting.set(keyId, [resolve])
    })
  }

  function askAll(): void {
    const asked = [...waiting]
    waiting = new Map()
    for (let from = 0; from < asked.length; from += MAX_KEYS_PER_QUESTION) {
      void askSome(asked.slice(from, from + MAX_KEYS_PER_QUESTION))
    }
  }

  async function askSome(asked: [string, Answer[]][]): Promise<void> {
    const keyIds = asked.map(([keyId]) => keyId)
    while (!stopped) {
      const found = await questions.standing(keyIds).catch(() => null)
      if (found) {
        for (const [keyId, answers] of asked) for (const answer of answers) answer(found.get(keyId))
        return
      }
      await wait(RETRY_MS, undefined, { ref: false })
    }
  }
}
