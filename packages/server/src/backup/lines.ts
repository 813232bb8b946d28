/** A line is longer than any that was written here, so the file is not one of ours. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
}

/**
 * The lines of a text that arrives in pieces, without their line feeds. Holds at most one line and one piece.
 *
 * @param maxLength of one line, in UTF-16 code units
 * @param onCut called with what follows the last line feed, if anything does
 * @throws LineTooLong
 */
export async function* wholeLines(
  pieces: AsyncIterable<string>,
  maxLength: number,
  onCut: (rest: string) => void = () => {},
): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of pieces) {
    const texts = (rest + piece).split('\n')
    rest = texts.pop()!
    if (rest.length > maxLength || texts.some(text => text.length > maxLength)) throw new LineTooLong()
    yield* texts
  }
  if (rest !== '') onCut(rest)
}
