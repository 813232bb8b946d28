/** Creates a function that runs asynchronous work sequentially, in the order of its calls. */
export function createMutex(): <Answer>(work: () => Promise<Answer>) => Promise<Answer> {
  let previousWork: Promise<unknown> = Promise.resolve()
  return work => {
    const result = previousWork.then(work)
    previousWork = result.catch(() => {})
    return result
  }
}
