import { parentPort, workerData } from 'node:worker_threads'
import { openExchangeSteps } from './exchange-steps.ts'

/** A thread that answers each list of key hashes with the list of their tokens. */

const steps = openExchangeSteps(workerData as string)
parentPort!.on('message', (keyHashes: string[] | null) => {
  if (keyHashes) parentPort!.postMessage(keyHashes.map(steps.issueToken))
  else parentPort!.close()
})
parentPort!.postMessage('opened')
