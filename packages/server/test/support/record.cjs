// Preloaded into every process of a test run by run-tests.ts. CommonJS for any Node version, because the launcher's
// tests and npm also run on older ones, in which nothing is recorded. Nor in threads: their output leaves through the
// main thread, and the only one, the SQLite writer, creates no secrets.
const { isMainThread } = require('node:worker_threads')

if (isMainThread && process.env.TEST_RECORDING && Number(process.versions.node.split('.')[0]) >= 24)
  require('./recording.ts').startRecording(process.env.TEST_RECORDING)
