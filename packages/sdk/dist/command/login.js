import { requestJson } from '../http.js';
import { createCredentials } from './credentials.js';
import { awaitDecision, requestDeviceCodes } from './device-grant.js';
import { keyName, machineName } from './node-process.js';
import { openBrowser } from './open-browser.js';
import { serviceUrl } from './service-url.js';
/** Creates a key for this machine by the device grant (RFC 8628) and stores it, so that nobody has to copy one. */
export async function login(options) {
    const credentials = createCredentials();
    const url = serviceUrl(options.url, credentials.latest);
    const previousKey = credentials.find(url);
    const name = keyName(options.name ?? '') || machineName();
    const codes = await requestDeviceCodes(url, { scopes: options.scopes, deviceName: name });
    console.log(`To connect this machine, open this page and compare its code with ${codes.user_code}:

  ${codes.verification_uri_complete}

In another browser open ${codes.verification_uri} and type the code. Waiting…`);
    if (options.opensBrowser)
        openBrowser(codes.verification_uri_complete);
    const token = await awaitDecision(url, codes);
    const createdKey = await requestJson(fetch, `${url}/v1/api-keys`, {
        method: 'POST',
        body: { name },
        headers: { authorization: `Bearer ${token.access_token}` },
    });
    const { key, id, scopes, expires_at } = createdKey;
    credentials.store(url, { key, id, name: createdKey.name, scopes, expires_at });
    console.log(`Connected. The key "${createdKey.name}" (${createdKey.key_prefix}…) may ${scopes.join(', ')}${expiryText(expires_at)}.
It is stored in ${credentials.path}, and \`run\` uses it.`);
    if (previousKey)
        console.log(`The key that was stored before still works. Revoke it at ${url}/keys/${previousKey.id}`);
}
function expiryText(expiresAt) {
    return expiresAt === null ? '' : ` until ${expiresAt.slice(0, 10)}`;
}
