const ALPHABET = /^[A-Za-z0-9_-]*$/;
/**
 * Decodes base64url without padding (RFC 4648 section 5). Returns undefined for any other text, and for non-canonical
 * encodings, so that a token has exactly one text form.
 */
export function decodeBase64url(text) {
    if (!ALPHABET.test(text) || text.length % 4 === 1)
        return undefined;
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    if (encodeBase64url(binary) !== text)
        return undefined;
    return Uint8Array.from(binary, character => character.charCodeAt(0));
}
function encodeBase64url(binary) {
    return btoa(binary)
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replace(/={1,2}$/, '');
}
