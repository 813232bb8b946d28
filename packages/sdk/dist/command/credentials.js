import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { KeywayError } from '../errors.js';
import { writePrivateFile } from '../private-file.js';
import { configFolder } from './node-process.js';
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
        /** Removes the key, and returns it; null if there was none. */
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
    function write(content) {
        try {
            writePrivateFile(path, `${JSON.stringify(content, null, 2)}\n`);
        }
        catch (error) {
            throw unusable(`cannot be written: ${error.message}`);
        }
    }
    function unusable(why) {
        return new KeywayError('invalid_configuration', `${path} ${why}`);
    }
}
