const { closeSync, constants, openSync, unlinkSync, writeFileSync } = require('node:fs')
const { randomUUID } = require('node:crypto')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { getRawAsset } = require('node:sea')

/*
 * Replaces sodium-native/binding.js in the single executable: loads the addon that it contains. The system loads
 * libraries from files only, so the addon is written to an unlinked file, which nobody else can open or replace, and
 * which ends with the process. /dev/shm is tried first, since /tmp may be mounted without the right to execute.
 */
module.exports = firstOf(['/dev/shm', tmpdir()], load)

function firstOf(folders, attempt) {
  const errors = []
  for (const folder of folders) {
    try {
      return attempt(folder)
    } catch (error) {
      errors.push(error)
    }
  }
  throw new AggregateError(errors, 'the addon cannot be loaded from any folder')
}

function load(folder) {
  const path = join(folder, `keyway-${randomUUID()}`)
  // O_EXCL refuses an existing file or a link of this name.
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    unlinkSync(path)
    writeFileSync(file, new Uint8Array(getRawAsset('sodium-native.node')))
    const module = { exports: {} }
    process.dlopen(module, `/proc/self/fd/${file}`)
    return module.exports
  } finally {
    closeSync(file)
  }
}
