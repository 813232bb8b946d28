import { readFileSync } from 'node:fs';
import { environment, serviceOrigin } from '../environment.js';
/**
 * The origin of the service that a command is for: the given one, the configured one, the one this package was
 * downloaded from, or that of the last login.
 *
 * @throws KeywayError `invalid_configuration` if there is none of these, or it is not an http or https URL
 */
export function serviceUrl(urlOption, latest) {
    return serviceOrigin(urlOption ?? environment('KEYWAY_URL') ?? packagedServiceUrl() ?? latest() ?? undefined);
}
/**
 * Each Keyway instance serves this package for download, and writes its own public URL into it. Undefined in a package
 * from elsewhere.
 */
function packagedServiceUrl() {
    try {
        const text = readFileSync(new URL('../../service.json', import.meta.url), 'utf8');
        return JSON.parse(text).url;
    }
    catch {
        return undefined;
    }
}
