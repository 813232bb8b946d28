import { readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock } from './clock.js';
import { KeywayError } from './errors.js';
import { withFileLock } from './file-lock.js';
import { writePrivateFile } from './private-file.js';
import { parseTokens } from './token-store.js';
/**
 * A store in a file that only this user can read (mode 0600, its folder 0700 if it is new), shared by all processes of
 * a machine. One process at a time refreshes; if it dies meanwhile, the others wait for five seconds. A crash leaves
 * either the old or the new tokens. All methods throw a `KeywayError` `invalid_configuration` if they cannot read,
 * write, remove or lock the file; `get` also if it holds anything but tokens. Without a file `get` returns undefined.
 */
export function fileTokenStore(path, options = {}) {
    const file = resolve(path);
    const lockFolder = join(dirname(file), `.${basename(file)}.lock`);
    return {
        get() {
            const text = withConfigurationError(file, 'read', () => readIfPresent(file));
            if (text === undefined)
                return undefined;
            const tokens = parseTokens(text);
            if (tokens)
                return tokens;
            const advice = `${file} does not hold the tokens of a session. Remove it, and sign in again.`;
            throw new KeywayError('invalid_configuration', advice);
        },
        set: tokens => withConfigurationError(file, 'written', () => writePrivateFile(file, JSON.stringify(tokens))),
        delete: () => withConfigurationError(file, 'removed', () => rmSync(file, { force: true })),
        exclusive: work => withFileLock(lockFolder, work, options.clock ?? systemClock),
    };
}
function readIfPresent(file) {
    try {
        return readFileSync(file, 'utf8');
    }
    catch (error) {
        if (error.code === 'ENOENT')
            return undefined;
        throw error;
    }
}
/** Turns an error of the file system into a KeywayError `invalid_configuration`. */
function withConfigurationError(path, verb, work) {
    try {
        return work();
    }
    catch (cause) {
        const message = `${path} cannot be ${verb}: ${cause.message}`;
        throw new KeywayError('invalid_configuration', message, { cause });
    }
}
