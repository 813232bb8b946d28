import { readFileSync } from 'node:fs';
import { environment, serviceOrigin } from '../environment.js';
/**
 * The service that a command is for: the given one, the configured one, the one this package was downloaded from, or
 * that of the last login.
 */
export function serviceUrl(asked, latest) {
    return serviceOrigin(asked ?? environment('KEYWAY_URL') ?? ownService() ?? latest() ?? undefined);
}
/** An instance writes its public URL into the package that it serves. */
function ownService() {
    try {
        const text = readFileSync(new URL('../../service.json', import.meta.url), 'utf8');
        return JSON.parse(text).url;
    }
    catch {
        return undefined;
    }
}
