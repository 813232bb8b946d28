/** Which service a command is for: as asked, as set, the one this package was downloaded from, or the last login. */
export declare function serviceUrl(asked: string | undefined, latest: () => string | null): string;
