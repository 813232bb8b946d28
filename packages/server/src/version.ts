import { readOwnFile } from './own-files.ts'

export const VERSION: string = JSON.parse(readOwnFile('packages/server/package.json').toString()).version
