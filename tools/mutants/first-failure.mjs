/** A reporter for node:test that says nothing but the first failure, and ends the process at it. */
export default async function* firstFailure(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.todo !== undefined) continue
    yield `${data.name}\n`
    process.exit(1)
  }
}
