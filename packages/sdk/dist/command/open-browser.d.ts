/**
 * Tries to open a page with `$BROWSER` or else the program of the platform, never through a shell. Errors are ignored,
 * since the address is printed anyway.
 */
export declare function openBrowser(url: string, env?: NodeJS.ProcessEnv): void;
