import assert from 'node:assert/strict'
import { relative } from 'node:path'
import { test } from 'node:test'
import type { EndedStates } from '../../src/backup/journaled-storage.ts'
import { sourceFiles, src } from './source.ts'

const RECORDER = 'endings/record-ending.ts'
/** What only the recorder does. */
const PARTS = [/\.endings\.insert\(/, /type: 'api_key\.changed', keyId/, /type: 'session\.ended', sessionId/]
/** The verbs of the stores that end something before its time. */
const ENDS =
  /\btx\.(?:sessions\.(?:end|endAllOf)|apiKeys\.(?:revoke|revokeAllOf|replace)|users\.erase|replay\.(?:endKeyBy|replaceNetworks))\(/
/** The ways to record it: the recorder, and what calls nothing but it. */
const RECORDS = /\b(?:recordEnding|recordEnd|recordRevocation|recordChange|recordAccount)\(/

test('an ending is recorded by one call, and no file ends something without it', async () => {
  const wrong: string[] = []
  for (const { path, text } of await sourceFiles()) {
    const file = relative(src, path)
    if (file.startsWith('storage/') || file === RECORDER) continue
    const isJournal = file === 'backup/journaled-storage.ts'
    if (!isJournal && PARTS.some(part => part.test(text)))
      wrong.push(`${file} records a part of an ending itself`)
    if (ENDS.test(text) && !RECORDS.test(text)) wrong.push(`${file} ends something and records nothing`)
  }
  assert.deepEqual(wrong, [])
})

test('a kind of ending without its entry in the journal does not compile', () => {
  const none = async () => []
  const complete: EndedStates = { api_key: none, session: none, user: none }
  // @ts-expect-error: `npm run check` fails here when this compiles
  const incomplete: EndedStates = { api_key: none, session: none }
  assert.notDeepEqual(Object.keys(incomplete), Object.keys(complete))
})
