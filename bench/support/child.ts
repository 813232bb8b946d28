/** Runs the jobs that the parent process sends, one after the other, and answers each; exits with its parent. */
export function serveJobs<Order, Result>(run: (order: Order) => Promise<Result>): void {
  process.on('message', (order: Order) => {
    run(order).then(
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
