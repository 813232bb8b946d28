import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KeywayError } from '../errors.js';
import { configFolder } from './node-process.js';
/** Readable by this user only. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** The keys of this machine, in the user's configuration folder. */
export function createCredentials(folder = configFolder()) {
    const path = join(folder, 'credentials.json');
    return {
        path,
        find: (url) => read().services[url] ?? null,
        latest: () => read().latest,
        store(url, key) {
            const { services } = read();
            write({ services: { ...services, [url]: key }, latest: url });
        },
        /** The forgotten key; null if there was none. */
        forget(url) {
            const { services, latest } = read();
            const { [url]: forgotten, ...others } = services;
            if (!forgotten)
                return null;
            const left = Object.keys(others);
            if (left.length === 0)
                rmSync(path);
            else
                write({ services: others, latest: latest === url ? left[0] : latest });
            return forgotten;
        },
    };
    /** @throws KeywayError `invalid_configuration` if the file was damaged */
    function read() {
        let text;
        try {
            text = readFileSync(path, 'utf8');
        }
        catch (error) {
            if (error.code === 'ENOENT')
                return { services: {}, latest: null };
            throw unusable(`cannot be read: ${error.message}`);
        }
        try {
            const { services, latest } = JSON.parse(text);
            if (typeof services !== 'object' || services === null)
                throw new Error('no services');
            return { services, latest: latest ?? null };
        }
        catch {
            throw unusable('is not what `login` wrote. Remove it, and log in again.');
        }
    }
    /** Written beside and renamed, so that no reader sees half of it and no crash loses the other keys. */
    function write(content) {
        try {
            mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
            const beside = join(folder, `.credentials-${randomUUID()}`);
            writeFileSync(beside, `${JSON.stringify(content, null, 2)}\n`, { mode: FILE_MODE, flag: 'wx' });
            // The mode above is narrowed by the umask, never widened; this one is exact.
            chmodSync(beside, FILE_MODE);
            renameSync(beside, path);
        }
        catch (error) {
            throw unusable(`cannot be written: ${error.message}`);
        }
    }
    function unusable(why) {
        return new KeywayError('invalid_configuration', `${path} ${why}`);
    }
}
