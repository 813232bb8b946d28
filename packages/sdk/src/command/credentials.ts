import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { KeywayError } from '../errors.ts'
import { writePrivateFile } from '../private-file.ts'
import { configFolder } from './node-process.ts'

/** A key of this machine, as `login` stored it. */
export interface StoredKey {
  key: string
  id: string
  name: string | null
  scopes: string[]
  expires_at: string | null
}

interface CredentialsFile {
  /** Keys by the service's origin. */
  services: Record<string, StoredKey>
  /**
   * The origin of the service of the last login; once its key was removed, that of another stored key. Null if no key
   * is stored.
   */
  latest: string | null
}

/** The keys of this machine, in the user's configuration folder. */
export function createCredentials(folder: string = configFolder()) {
  const path = join(folder, 'credentials.json')

  return {
    path,
    find: (url: string): StoredKey | null => read().services[url] ?? null,
    latest: (): string | null => read().latest,
    store(url: string, key: StoredKey): void {
      const { services } = read()
      write({ services: { ...services, [url]: key }, latest: url })
    },
    /** Removes the key, and returns it; null if there was none. */
    remove(url: string): StoredKey | null {
      const { services, latest } = read()
      const { [url]: removed, ...otherServices } = services
      if (!removed) return null
      const otherUrls = Object.keys(otherServices)
      if (otherUrls.length === 0) rmSync(path)
      else write({ services: otherServices, latest: latest === url ? otherUrls[0]! : latest })
      return removed
    },
  }

  /** @throws KeywayError `invalid_configuration` if the file cannot be read or is damaged */
  function read(): CredentialsFile {
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { services: {}, latest: null }
      throw fileError(`cannot be read: ${(error as Error).message}`)
    }
    try {
      const { services, latest } = JSON.parse(text) as Partial<CredentialsFile>
      if (typeof services !== 'object' || services === null) throw new Error('no services')
      return { services, latest: latest ?? null }
    } catch {
      throw fileError('is not what `login` wrote. Remove it, and log in again.')
    }
  }

  function write(content: CredentialsFile): void {
    try {
      writePrivateFile(path, `${JSON.stringify(content, null, 2)}\n`)
    } catch (error) {
      throw fileError(`cannot be written: ${(error as Error).message}`)
    }
  }

  function fileError(problem: string): KeywayError {
    return new KeywayError('invalid_configuration', `${path} ${problem}`)
  }
}
