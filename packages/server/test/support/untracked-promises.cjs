// Preloaded into every process of a test run by run-tests.ts; plain CommonJS as record.cjs is.
//
// Node's test runner follows every promise of a process by an async hook, to find out which test an uncaught error came
// from. That cost a sixth of the suite's processor time. Without it such an error fails the file instead of the test
// (stray-errors.test.ts), and promises run as they do in production, where nothing tracks them.
const hooks = require('node:async_hooks')

const { createHook } = hooks
hooks.createHook = callbacks => createHook({ trackPromises: false, ...callbacks })
