export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
}

/**
 * Splits a stream of text chunks into lines, without line feeds. Holds at most one line and one chunk.
 *
 * @param maxLength of one line, in UTF-16 code units
 * @param onUnterminated called at the end with the text after the last line feed, if there is any
 * @throws LineTooLong
 */
export async function* wholeLines(
  chunks: AsyncIterable<string>,
  maxLength: number,
  onUnterminated: (unfinishedLine: string) => void = () => {},
): AsyncGenerator<string> {
  let unfinishedLine = ''
  for await (const chunk of chunks) {
    const lines = (unfinishedLine + chunk).split('\n')
    unfinishedLine = lines.pop()!
    if (unfinishedLine.length > maxLength || lines.some(line => line.length > maxLength))
      throw new LineTooLong()
    yield* lines
  }
  if (unfinishedLine !== '') onUnterminated(unfinishedLine)
}
