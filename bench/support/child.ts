/**
 * Runs each job when the parent process sends it, and sends back its result unless that is undefined. The process ends
 * with status 1 if a job fails, and with its parent.
 */
export function serveJobs<Job, Result>(run: (job: Job) => Promise<Result>): void {
  process.on('message', (job: Job) => {
    run(job).then(
      result => {
        if (result !== undefined) process.send!(result)
      },
      error => {
        console.error(error)
        process.exit(1)
      },
    )
  })
  process.on('disconnect', () => process.exit())
}
