/**
 * The origin of the service that a command is for: the given one, the configured one, the one this package was
 * downloaded from, or that of the last login.
 *
 * @throws KeywayError `invalid_configuration` if there is none of these, or it is not an http or https URL
 */
export declare function serviceUrl(urlOption: string | undefined, latest: () => string | null): string;
