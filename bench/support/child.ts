/** Makes this process a child that carries out one order after the other and answers each; it ends with its parent. */
export function serveOrders<Order, Result>(run: (order: Order) => Promise<Result>): void {
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
