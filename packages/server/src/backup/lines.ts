/**
 * The lines of a text that comes in pieces, without their line feeds.
 *
 * @param cut told what stands behind the last line feed, if anything does
 */
export async function* wholeLines(
  pieces: AsyncIterable<string>,
  cut: (rest: string) => void = () => {},
): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of pieces) {
    const texts = (rest + piece).split('\n')
    rest = texts.pop()!
    yield* texts
  }
  if (rest !== '') cut(rest)
}
