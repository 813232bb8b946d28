/** A demo agent: connects, prints its events, echoes messages, and answers requests. */
export declare function run(urlOption: string | undefined): void;
