/**
 * The name in `knownNames` with the smallest edit distance to `name`, if that is at most `maxDistance`; otherwise null.
 * Takes time proportional to the product of the lengths, so callers must limit the length of external input.
 */
export function nearestName(name: string, knownNames: readonly string[], maxDistance: number): string | null {
  const rankedNames = knownNames
    .map(candidate => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((left, right) => left.distance - right.distance)
  const bestMatch = rankedNames[0]
  return bestMatch && bestMatch.distance <= maxDistance ? bestMatch.candidate : null
}

/** The Levenshtein distance. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const nextRow = [i]
    for (let j = 1; j <= right.length; j++) {
      const substitutionDistance = row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1)
      nextRow.push(Math.min(substitutionDistance, row[j]! + 1, nextRow[j - 1]! + 1))
    }
    row = nextRow
  }
  return row[right.length]!
}
