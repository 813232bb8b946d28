// Runs before the tests. It is JavaScript for Node 14, since without the dependencies it runs on the machine's own
// Node.
const REQUIRED_NODE = 24

if (Number(process.versions.node.split('.')[0]) < REQUIRED_NODE) {
  console.error(
    `The tests need Node ${REQUIRED_NODE} or newer; this is ${process.version}. The right one comes with the dependencies: run "npm ci" (npm 12 and newer: without --ignore-scripts).`,
  )
  process.exitCode = 1
}
