/** Runs the jobs that the parent process sends, one after the other, and answers each; exits with its parent. */
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
