/** The middle of some values: one disturbed run does not move it. */
export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** The smallest value that `p` percent of all are not above. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** `0.81 (0.78–0.84)`: the median, and the worst and best of all runs. */
export function spread(values: readonly number[], digits = 2): string {
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)]
  return `${middle.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}
