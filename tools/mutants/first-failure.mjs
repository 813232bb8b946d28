/** A reporter for node:test that prints only the first failure, and then ends the process. */
export default async function* firstFailure(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.todo !== undefined) continue
    yield `${data.name}\n`
    process.exit(1)
  }
}
