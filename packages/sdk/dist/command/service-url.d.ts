/**
 * The service that a command is for: the given one, the configured one, the one this package was downloaded from, or
 * that of the last login.
 */
export declare function serviceUrl(urlOption: string | undefined, latest: () => string | null): string;
