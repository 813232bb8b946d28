/** A function that does one work after the other, in the order of its calls. */
export function createTurns() {
    let last = Promise.resolve();
    return work => {
        const turn = last.then(work);
        last = turn.catch(() => { });
        return turn;
    };
}
