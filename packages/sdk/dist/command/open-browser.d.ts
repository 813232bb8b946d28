/**
 * Tries to open a page: with `$BROWSER`, else as the platform does. Never through a shell. Errors are
 * ignored, since the address is printed anyway.
 */
export declare function openBrowser(url: string, env?: NodeJS.ProcessEnv): void;
