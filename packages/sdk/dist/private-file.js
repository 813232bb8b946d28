import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, } from 'node:fs';
import { basename, dirname, join } from 'node:path';
/** Readable by this user only. */
export const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/**
 * Replaces a file, readable by this user only. Written to a temporary file and renamed, so that no reader sees a
 * partial file and a crash loses nothing.
 */
export function writePrivateFile(path, text) {
    const folder = dirname(path);
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
    const beside = join(folder, `.${basename(path)}-${randomUUID()}`);
    try {
        writeDurably(beside, text);
        renameSync(beside, path);
    }
    catch (error) {
        rmSync(beside, { force: true });
        throw error;
    }
}
/** Without `fsync` the renamed file could be empty after a power failure. */
function writeDurably(path, text) {
    const file = openSync(path, 'wx', FILE_MODE);
    try {
        // The mode above is narrowed by the umask, never widened; this one is exact.
        chmodSync(path, FILE_MODE);
        writeFileSync(file, text);
        fsyncSync(file);
    }
    finally {
        closeSync(file);
    }
}
