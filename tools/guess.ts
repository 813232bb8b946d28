import { createHash, randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * `npm run guess`: ten promises at random. Guess from the tree alone which file keeps each; then
 * `npm run guess -- SEED --places` shows where they are. What is guessed wrong is badly named or in the wrong place.
 */

const PROMISES = 10

const [given, flag] = process.argv.slice(2)
const seed = given ?? String(randomInt(10_000))
const places = readPlaces(readFileSync(join(import.meta.dirname, '../docs/places.md'), 'utf8'))
for (const { promise, files } of shuffled(places, seed).slice(0, PROMISES))
  console.log(flag === '--places' ? `- ${promise}\n    ${files}` : `- ${promise}`)
if (flag !== '--places') console.log(`\nWhich files? They are shown by: npm run guess -- ${seed} --places`)

interface Place {
  /** Behind the heading that it stands under: `Mail: …`. */
  promise: string
  files: string
}

function readPlaces(text: string): Place[] {
  const sections = text.split(/^## /m).slice(1)
  return sections.flatMap(section => {
    const [heading] = section.split('\n', 1)
    const promises = section.matchAll(/^- (.+?): (`.+)$/gm)
    return [...promises].map(([, promise, files = '']) => ({ promise: `${heading}: ${promise}`, files }))
  })
}

function shuffled(all: readonly Place[], by: string): Place[] {
  const rank = ({ promise }: Place) => createHash('sha256').update(`${by} ${promise}`).digest('hex')
  return all.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1))
}
