// Preloaded into every process of a test run by run-tests.ts. Plain CommonJS that any Node understands, because the
// launcher's tests and npm itself run on older ones, which are let be. Not into threads: what one prints leaves by the
// main thread, and the SQLite writer, the only one there is, makes no secrets.
const { isMainThread } = require('node:worker_threads')

if (isMainThread && process.env.TEST_RECORDING && Number(process.versions.node.split('.')[0]) >= 24)
  require('./recording.ts').startRecording(process.env.TEST_RECORDING)
