/** Creates a function that runs asynchronous work sequentially, in the order of its calls. */
export function createMutex() {
    let previousWork = Promise.resolve();
    return work => {
        const result = previousWork.then(work);
        previousWork = result.catch(() => { });
        return result;
    };
}
