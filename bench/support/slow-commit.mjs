import { DatabaseSync } from 'node:sqlite'
import { isMainThread } from 'node:worker_threads'

// Imitates a slow volume. Loaded before the service (node --import), it delays every COMMIT of the writer thread by
// BENCH_COMMIT_MS, and blocks only that thread.
const delayMs = Number(process.env.BENCH_COMMIT_MS ?? 10)
if (!isMainThread) {
  const sleepCell = new Int32Array(new SharedArrayBuffer(4))
  const originalExec = DatabaseSync.prototype.exec
  DatabaseSync.prototype.exec = function (sql) {
    if (/^\s*commit/i.test(sql)) Atomics.wait(sleepCell, 0, 0, delayMs)
    return originalExec.call(this, sql)
  }
}
