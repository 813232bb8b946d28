/** An environment variable where the platform has such a thing. */
export declare function environment(name: string): string | undefined;
/** The service's origin, or an error that shows the right form. */
export declare function serviceOrigin(url: string | undefined): string;
/** Random, URL-safe, 128 bits: `crypto.randomUUID` is missing on pages served over plain http. */
export declare function randomId(): string;
