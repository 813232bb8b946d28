/**
 * Decodes base64url without padding (RFC 4648 section 5). Returns undefined for any other text, and for non-canonical
 * encodings, so that a token has exactly one text form.
 */
export declare function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | undefined;
