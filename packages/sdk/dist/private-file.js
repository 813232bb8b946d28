import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, } from 'node:fs';
import { basename, dirname, join } from 'node:path';
/** The mode of a folder that only this user can read. */
export const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/**
 * Replaces a file that only this user can read. Writes to a temporary file and renames it, so that no reader sees a
 * partial file and a crash loses nothing.
 */
export function writePrivateFile(path, text) {
    const folder = dirname(path);
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
    const temporaryPath = join(folder, `.${basename(path)}-${randomUUID()}`);
    try {
        writeDurably(temporaryPath, text);
        renameSync(temporaryPath, path);
    }
    catch (error) {
        rmSync(temporaryPath, { force: true });
        throw error;
    }
}
/** Without `fsync` the renamed file could be empty after a power failure. */
function writeDurably(path, text) {
    const file = openSync(path, 'wx', FILE_MODE);
    try {
        // The umask may have removed bits from the mode above; `chmod` sets the mode exactly.
        chmodSync(path, FILE_MODE);
        writeFileSync(file, text);
        fsyncSync(file);
    }
    finally {
        closeSync(file);
    }
}
