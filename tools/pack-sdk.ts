/** Writes the npm package of the SDK as a registry gets it: `node tools/pack-sdk.ts FILE REPOSITORY`. */
import { writeFile } from 'node:fs/promises'
import { packSdkRelease } from '../packages/sdk/pack.ts'

const [file, repository] = process.argv.slice(2)
if (!file || !repository) throw new Error('Usage: node tools/pack-sdk.ts FILE REPOSITORY')
await writeFile(file, (await packSdkRelease(repository)).content)
