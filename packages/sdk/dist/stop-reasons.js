import { KeywayError } from './errors.js';
import { CLOSE_CODES } from './protocol.js';
/** Lost connections (1006) and unknown codes are retried after a back-off. */
export function reconnectAfter(code) {
    return code in CLOSE_CODES ? CLOSE_CODES[code].reconnect : 'backoff';
}
/** Whether the failure is a close of the connection, not an error. */
export function isClose(failure) {
    return (!(failure instanceof Error) &&
        typeof failure === 'object' &&
        failure !== null &&
        'code' in failure &&
        'reason' in failure);
}
export function closeFromError(failure) {
    if (!(failure instanceof KeywayError))
        return { code: 1006, reason: String(failure) };
    const cause = failure.networkCause === undefined ? {} : { cause: failure.networkCause };
    return { code: 1006, reason: failure.code, error: failure, ...cause };
}
/**
 * HTTP statuses by which an exchange refuses the key for good, whatever the error code: a later service may add codes.
 */
const FINAL_STATUSES = new Set([401, 403]);
/**
 * Codes that are not retryable whatever the status. A malformed key is refused before any request, without a status.
 */
const FINAL_CODES = new Set([
    'invalid_api_key',
    'invalid_request',
    'invalid_configuration',
]);
/** Whether an error of the token exchange stops the agent. `bad_response` does not, since it may come from a proxy. */
export function isFinalError(error) {
    if (!(error instanceof KeywayError))
        return false;
    return FINAL_CODES.has(error.code) || (FINAL_STATUSES.has(error.status) && error.code !== 'bad_response');
}
/** What happened and what to do, by error code or close reason. */
const ADVICE = {
    invalid_api_key: 'The API key is unknown here. Check that it is complete and belongs to this service.',
    api_key_revoked: 'The API key was revoked. Make a new key and start the agent with it.',
    api_key_expired: 'The API key has expired. Make a new key, or use the successor that it was rotated to.',
    insufficient_scope: 'The API key may not connect. Use a key that has the scope agent:connect.',
    account_suspended: "The key's owner is suspended. Ask the operator of the service.",
    network_not_allowed: "The API key may not be used from this network. Add it to the key's allowed_networks.",
    session_required: 'This credential cannot be exchanged. Use an API key (svc_…).',
    revoked: 'The API key or session behind this agent was revoked. Make a new key and start the agent with it.',
    bad_message: 'The hub could not read a frame. Update @keyway/sdk, or report this.',
    resumed_elsewhere: 'Another program resumed this connection. Start each agent with its own state.',
    too_big: 'The hub refused a frame as too big. Update @keyway/sdk, or report this.',
};
export function stopErrorFromExchange(error) {
    const { code, status, requestId, errors, message } = error;
    return new KeywayError(code, ADVICE[code] ?? message, { status, requestId, errors, cause: error });
}
export function stopErrorFromClose({ code, reason }) {
    const name = ADVICE[reason] ? reason : FALLBACK_REASONS[code];
    const advice = (name && ADVICE[name]) || `The hub closed the connection for good (${code} ${reason}).`;
    return new KeywayError(errorCodeOf(code, reason), advice);
}
/** The reason to assume for a close code whose reason is missing or unknown, since proxies may drop reasons. */
const FALLBACK_REASONS = {
    1009: 'too_big',
    4400: 'bad_message',
    4409: 'resumed_elsewhere',
    4410: 'revoked',
};
/** The reason of a close with 4403 is the error code with which an exchange would refuse the key. */
function errorCodeOf(code, reason) {
    if (code === 4410)
        return 'revoked';
    return code === 4403 && reason !== '' ? reason : 'refused';
}
