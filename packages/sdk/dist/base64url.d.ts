/**
 * Decodes base64url without padding (RFC 4648 section 5); undefined for every spelling but the canonical one, so
 * that one token cannot have two forms.
 */
export declare function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | undefined;
