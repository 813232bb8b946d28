import { crc32 } from 'node:zlib'

export interface StoredFile {
  path: string
  content: Buffer
}

/** The date of every file: 1 January 1980, the earliest that ZIP can express. */
const DOS_DATE = 0x0021
/** The version of the format that a reader needs: 2.0. */
const VERSION = 20
/** The flag for names in UTF-8. */
const UTF8_NAMES = 0x0800
/** The host system that defines the meaning of `ATTRIBUTES`. */
const UNIX = 3 << 8
/** A regular file with mode 0644. */
const ATTRIBUTES = 0o100644 * 0x10000

/**
 * A ZIP archive (PKWARE APPNOTE 6.3.3) without compression, owners and times, so that its bytes depend on the files
 * alone.
 */
export function storedZip(files: StoredFile[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const file of files) {
    const name = Buffer.from(file.path)
    const local = Buffer.concat([localHeader(file, name), name, file.content])
    directory.push(Buffer.concat([centralHeader(file, name, offset), name]))
    parts.push(local)
    offset += local.length
  }
  const size = directory.reduce((sum, entry) => sum + entry.length, 0)
  return Buffer.concat([...parts, ...directory, endOfDirectory(files.length, size, offset)])
}

function localHeader(file: StoredFile, name: Buffer): Buffer {
  const header = Buffer.alloc(30)
  header.writeUInt32LE(0x04034b50, 0)
  header.writeUInt16LE(VERSION, 4)
  writeCommon(header, 6, file, name)
  return header
}

function centralHeader(file: StoredFile, name: Buffer, offset: number): Buffer {
  const header = Buffer.alloc(46)
  header.writeUInt32LE(0x02014b50, 0)
  header.writeUInt16LE(UNIX | VERSION, 4)
  header.writeUInt16LE(VERSION, 6)
  writeCommon(header, 8, file, name)
  header.writeUInt32LE(ATTRIBUTES, 38)
  header.writeUInt32LE(offset, 42)
  return header
}

/**
 * Writes the fields that a local and a central header share, from the flags to the length of the name. One of them, the
 * compression method, stays 0: the content is stored uncompressed.
 */
function writeCommon(header: Buffer, offset: number, { content }: StoredFile, name: Buffer): void {
  header.writeUInt16LE(UTF8_NAMES, offset)
  header.writeUInt16LE(DOS_DATE, offset + 6)
  header.writeUInt32LE(crc32(content), offset + 8)
  header.writeUInt32LE(content.length, offset + 12)
  header.writeUInt32LE(content.length, offset + 16)
  header.writeUInt16LE(name.length, offset + 20)
}

function endOfDirectory(count: number, size: number, offset: number): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(offset, 16)
  return end
}
