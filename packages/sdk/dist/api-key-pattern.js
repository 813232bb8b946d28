/** A long-lived API key: `svc_` and 32 characters of `0-9A-Za-z`. */
export const API_KEY_PATTERN = /^svc_[0-9A-Za-z]{32}$/;
