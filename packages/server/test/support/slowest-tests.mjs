import { relative } from 'node:path'

const SHOWN_TESTS = 10

/** An additional reporter for node:test: lists the slowest tests, without suites. */
export default async function* slowestTests(events) {
  const tests = []
  for await (const { type, data } of events) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.details.type === 'suite') continue
    tests.push({ seconds: data.details.duration_ms / 1000, name: data.name, file: data.file ?? '' })
  }
  tests.sort((a, b) => b.seconds - a.seconds)
  for (const { seconds, name, file } of tests.slice(0, SHOWN_TESTS))
    yield `ℹ slow ${seconds.toFixed(1)} s: ${name} (${relative(process.cwd(), file)})\n`
}
