import { writeFile } from 'node:fs/promises'
import { configurationDocument } from '../../src/config-reference.ts'

await writeFile(new URL('../../../../docs/configuration.md', import.meta.url), configurationDocument())
