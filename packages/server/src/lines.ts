/** A line is longer than allowed. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
}

/**
 * Splits a stream of text chunks into lines, without line feeds. Holds at most one line and one chunk.
 *
 * @param maxLength of one line, in UTF-16 code units
 * @param onCut called with the text after the last line feed, if there is any
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
