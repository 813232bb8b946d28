/**
 * Tries to open a page: with `$BROWSER`, else as the platform does. Never through a shell. Nothing is reported: the
 * address is printed anyway.
 */
export declare function openBrowser(url: string, env?: NodeJS.ProcessEnv): void;
