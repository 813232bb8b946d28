/** A long-lived API key: `svc_` and 32 characters of `0-9A-Za-z`. */
export declare const API_KEY_PATTERN: RegExp;
