/** A function that does one work after the other, in the order of its calls. */
export declare function createTurns(): <Answer>(work: () => Promise<Answer>) => Promise<Answer>;
