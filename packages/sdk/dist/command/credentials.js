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
        remove(url) {
            const { services, latest } = read();
            const { [url]: removed, ...otherServices } = services;
            if (!removed)
                return null;
            const otherUrls = Object.keys(otherServices);
            if (otherUrls.length === 0)
                rmSync(path);
            else
                write({ services: otherServices, latest: latest === url ? otherUrls[0] : latest });
            return removed;
        },
    };
    /** @throws KeywayError `invalid_configuration` if the file cannot be read or is damaged */
    function read() {
        let text;
        try {
            text = readFileSync(path, 'utf8');
        }
        catch (error) {
            if (error.code === 'ENOENT')
                return { services: {}, latest: null };
            throw fileError(`cannot be read: ${error.message}`);
        }
        try {
            const { services, latest } = JSON.parse(text);
            if (typeof services !== 'object' || services === null)
                throw new Error('no services');
            return { services, latest: latest ?? null };
        }
        catch {
            throw fileError('is not what `login` wrote. Remove it, and log in again.');
        }
    }
    function write(content) {
        try {
            writePrivateFile(path, `${JSON.stringify(content, null, 2)}\n`);
        }
        catch (error) {
            throw fileError(`cannot be written: ${error.message}`);
        }
    }
    function fileError(problem) {
        return new KeywayError('invalid_configuration', `${path} ${problem}`);
    }
}
