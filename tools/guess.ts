import { createHash, randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * `npm run guess`: ten behaviours at random. Guess from the tree alone which file keeps each; then
 * `npm run guess -- SEED --places` shows where they are. What is guessed wrong is badly named or in the wrong place.
 */

const SHOWN = 10

const [given, flag] = process.argv.slice(2)
const seed = given ?? String(randomInt(10_000))
const places = readPlaces(readFileSync(join(import.meta.dirname, '../docs/places.md'), 'utf8'))
for (const { behaviour, files } of shuffled(places, seed).slice(0, SHOWN))
  console.log(flag === '--places' ? `- ${behaviour}\n    ${files}` : `- ${behaviour}`)
if (flag !== '--places') console.log(`\nWhich files? They are shown by: npm run guess -- ${seed} --places`)

interface Place {
  /** Behind the heading that it stands under: `Mail: …`. */
  behaviour: string
  files: string
}

function readPlaces(text: string): Place[] {
  const sections = text.split(/^## /m).slice(1)
  return sections.flatMap(section => {
    const [heading] = section.split('\n', 1)
    const behaviours = section.matchAll(/^- (.+): (`[^`]+`(?:, `[^`]+`)*)$/gm)
    return [...behaviours].map(([, behaviour, files = '']) => ({
      behaviour: `${heading}: ${behaviour}`,
      files,
    }))
  })
}

function shuffled(all: readonly Place[], by: string): Place[] {
  const rank = ({ behaviour }: Place) => createHash('sha256').update(`${by} ${behaviour}`).digest('hex')
  return all.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1))
}
