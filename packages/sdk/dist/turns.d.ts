/** Creates a function that runs asynchronous work sequentially, in the order of its calls. */
export declare function createTurns(): <Answer>(work: () => Promise<Answer>) => Promise<Answer>;
