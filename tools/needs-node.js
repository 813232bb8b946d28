// Runs before the tests. Plain JavaScript of Node 14, because it runs on whatever Node the machine has where the
// right one did not come with the dependencies.
const NEEDED = 24

if (Number(process.versions.node.split('.')[0]) < NEEDED) {
  console.error(
    `The tests need Node ${NEEDED} or newer; this is ${process.version}. The right one comes with the dependencies: run "npm ci" (npm 12 and newer: without --ignore-scripts).`,
  )
  process.exitCode = 1
}
