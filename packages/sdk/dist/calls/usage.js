export function usageQuery({ bucket, from, to }) {
    return { bucket, from, to };
}
