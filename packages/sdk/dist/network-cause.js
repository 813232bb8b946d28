/** The end of an error message, after the service's address. */
export const NETWORK_ADVICE = {
    dns: 'its name does not resolve. Check the url and the name server',
    refused: 'it refuses connections. Check the url and whether the service runs',
    tls: 'its certificate was not accepted. Check the url, the clock and the certificate authorities',
    timeout: 'it did not answer in time. Check the network',
    network: 'the connection failed. Check the url and the network',
};
/** The error codes of Node, Bun and Deno for each cause. */
const CODE_PATTERNS = [
    ['dns', /^(ENOTFOUND|EAI_\w+)$/],
    ['refused', /^(ECONNREFUSED|ConnectionRefused)$/],
    ['tls', /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)/],
    ['timeout', /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|UND_ERR_HEADERS_TIMEOUT)$/],
];
/** Maximum number of wrapped errors to inspect. */
const MAX_DEPTH = 5;
/**
 * The cause by the first known error code in the chain of causes, since platforms wrap the error of the socket;
 * `network` if there is none.
 */
export function networkCauseOf(error, depth = 0) {
    if (typeof error !== 'object' || error === null || depth > MAX_DEPTH)
        return 'network';
    const { code, cause, errors } = error;
    const match = CODE_PATTERNS.find(([, pattern]) => typeof code === 'string' && pattern.test(code));
    if (match)
        return match[0];
    const innerErrors = [cause, ...(Array.isArray(errors) ? errors : [])];
    return (innerErrors.map(each => networkCauseOf(each, depth + 1)).find(each => each !== 'network') ?? 'network');
}
