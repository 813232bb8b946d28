// Preloaded into every process of a test run by run-tests.ts. Plain CommonJS that any Node understands, because the
// launcher's tests and npm itself run on older ones, which are let be.
if (process.env.TEST_RECORDING && Number(process.versions.node.split('.')[0]) >= 24)
  require('./recording.ts').startRecording(process.env.TEST_RECORDING)
