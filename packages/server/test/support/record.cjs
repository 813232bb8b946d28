// Preloaded into every process of a test run by run-tests.ts. It is CommonJS that any Node version can load, since
// the launcher's tests and npm also run on older versions, in which nothing is recorded. Worker threads are not
// recorded either: their output leaves through the main thread, and the only one (the SQLite writer) has no secrets.
const { isMainThread } = require('node:worker_threads')

if (isMainThread && process.env.TEST_RECORDING && Number(process.versions.node.split('.')[0]) >= 24)
  require('./recording.ts').startRecording(process.env.TEST_RECORDING)
