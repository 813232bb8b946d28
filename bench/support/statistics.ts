export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The median; the lower of the two middle values if their number is even; NaN if there are no values. */
export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** The smallest value that at least `p` percent of the values do not exceed; NaN if there are no values. */
export function percentile(values: readonly number[], p: number): number {
  const sortedValues = [...values].sort((a, b) => a - b)
  return sortedValues[Math.max(0, Math.ceil((p / 100) * sortedValues.length) - 1)] ?? Number.NaN
}

/** Median, minimum and maximum, as in `0.81 (0.78–0.84)`. */
export function spread(values: readonly number[], digits = 2): string {
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)]
  return `${middle.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`
}
