import { createCredentials } from './credentials.js';
import { serviceUrl } from './service-url.js';
/** Removes the stored key of this machine. Does not revoke it, since other processes may use it. */
export function logout(urlOption) {
    const credentials = createCredentials();
    const url = serviceUrl(urlOption, credentials.latest);
    const removedKey = credentials.remove(url);
    if (removedKey) {
        console.log(`Forgotten: ${credentials.path} has no key for ${url} any more.
The key itself still works. Revoke it at ${url}/keys/${removedKey.id}`);
    }
    else
        console.log(`There is no key for ${url} in ${credentials.path}.`);
}
