/** A demo agent: connects, prints its events, and echoes messages. */
export declare function run(asked: string | undefined): void;
