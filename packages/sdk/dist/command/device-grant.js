import { pause, systemClock } from '../clock.js';
import { userAgent } from '../environment.js';
import { errorFromFetch, KeywayError } from '../errors.js';
/** The id of the service's built-in client, under which `login` asks for a key. */
const CLIENT_ID = 'keyway-cli';
const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';
/** Added to the polling interval at each `slow_down` (RFC 8628 section 3.5). */
const SLOW_DOWN_SECONDS = 5;
const REQUEST_TIMEOUT_MS = 30_000;
/** Asks for a device code. @throws KeywayError */
export async function requestDeviceCodes(url, { scopes, deviceName }) {
    const scope = ['keys:create', ...scopes].join(' ');
    const fields = { client_id: CLIENT_ID, scope, device_name: deviceName };
    const { body, status } = await postForm(`${url}/oauth/device`, fields);
    if (status !== 200)
        throw refusedError(body, status);
    const codes = body;
    assertSameOrigin(url, codes);
    return codes;
}
/**
 * The terminal shows these URLs and a browser opens them, so they must belong to the service that was asked. The code,
 * which is shown too, must be plain: it could otherwise contain control characters.
 *
 * @throws KeywayError `bad_response`
 */
function assertSameOrigin(url, codes) {
    const pageUrls = [codes.verification_uri, codes.verification_uri_complete];
    const haveSameOrigin = pageUrls.every(page => URL.canParse(page) && new URL(page).origin === url && /^[!-~]+$/.test(page));
    if (haveSameOrigin && /^[A-Z0-9-]{4,20}$/.test(codes.user_code))
        return;
    throw new KeywayError('bad_response', `${url} answered with the page of another site. Check the address.`);
}
/**
 * Polls until a person has approved. Waits out network errors and a restart of the service.
 *
 * @throws KeywayError `refused` when the person denied, `timeout` when the code expired; `refused` or `not_found` when
 *   the service refused the poll
 */
export async function awaitDecision(url, codes) {
    const endsAt = performance.now() + codes.expires_in * 1000;
    let interval = codes.interval;
    while (performance.now() < endsAt) {
        await pause(systemClock, interval * 1000);
        const answer = await poll(url, codes.device_code);
        if (answer === 'slow_down')
            interval += SLOW_DOWN_SECONDS;
        else if (answer !== 'pending')
            return answer;
    }
    throw expiredError();
}
async function poll(url, deviceCode) {
    const fields = { grant_type: DEVICE_GRANT_TYPE, client_id: CLIENT_ID, device_code: deviceCode };
    const answer = await postForm(`${url}/oauth/token`, fields).catch((error) => {
        if (error.retryable)
            return null;
        throw error;
    });
    // No answer, a rate limit or an error of the service: poll less often, as RFC 8628 section 3.5 says for timeouts.
    if (answer === null || answer.status === 429 || answer.status >= 500)
        return 'slow_down';
    const { body, status } = answer;
    if (status === 200)
        return body;
    if (body.error === 'authorization_pending')
        return 'pending';
    if (body.error === 'slow_down')
        return 'slow_down';
    if (body.error === 'expired_token')
        throw expiredError();
    if (body.error === 'access_denied')
        throw new KeywayError('refused', 'The request was denied.', { status });
    throw refusedError(body, status);
}
function expiredError() {
    return new KeywayError('timeout', 'Nobody approved within ten minutes. Start again.');
}
function refusedError(body, status) {
    const reason = body.error_description ?? body.error ?? `status ${status}`;
    return new KeywayError(status === 404 ? 'not_found' : 'refused', `The service refused: ${reason}`, {
        status,
    });
}
/** Sends a form to an OAuth endpoint. @throws KeywayError, retryable if there was no answer */
async function postForm(url, fields) {
    const response = await fetch(url, {
        method: 'POST',
        body: new URLSearchParams(fields),
        headers: { accept: 'application/json', ...userAgent() },
        redirect: 'error',
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    }).catch(cause => {
        throw errorFromFetch(cause, url);
    });
    const body = (await response.json().catch(() => ({})));
    return { body, status: response.status };
}
