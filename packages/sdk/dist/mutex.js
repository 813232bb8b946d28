/** Creates a function that runs asynchronous work sequentially, in the order of its calls. */
export function createMutex() {
    let last = Promise.resolve();
    return work => {
        const result = last.then(work);
        last = result.catch(() => { });
        return result;
    };
}
