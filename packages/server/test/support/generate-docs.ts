import { writeFile } from 'node:fs/promises'
import { configurationDocument } from '../../src/config/documentation.ts'
import { licencesDocument } from './licences.ts'

const docs = new URL('../../../../docs/', import.meta.url)
await writeFile(new URL('configuration.md', docs), configurationDocument())
await writeFile(new URL('licences.md', docs), licencesDocument())
