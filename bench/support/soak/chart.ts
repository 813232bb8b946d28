/** One line of a chart. Values that are not finite are left out. */
export interface Series {
  name: string
  points: readonly { minute: number; value: number }[]
}

const WIDTH = 640
const HEIGHT = 160
const LEFT_MARGIN = 70
const BOTTOM_MARGIN = 20
const COLOURS = ['#3a4fcb', '#c2410c', '#0b7a55', '#8a2be2', '#6b7280']

/** An SVG line chart with its largest value and its last minute at the axes. */
export function chart(title: string, series: readonly Series[]): string {
  const values = series.flatMap(({ points }) => points.map(({ value }) => value)).filter(Number.isFinite)
  const minutes = series.flatMap(({ points }) => points.map(({ minute }) => minute))
  const maxValue = Math.max(...values, Number.MIN_VALUE)
  const lastMinute = Math.max(...minutes, Number.MIN_VALUE)
  const x = (minute: number) => LEFT_MARGIN + ((WIDTH - LEFT_MARGIN) * minute) / lastMinute
  const y = (value: number) => 10 + (HEIGHT - BOTTOM_MARGIN - 10) * (1 - value / maxValue)
  const lines = series.map(({ points }, index) => {
    const finitePoints = points.filter(({ value }) => Number.isFinite(value))
    const path = finitePoints
      .map(({ minute, value }) => `${x(minute).toFixed(1)},${y(value).toFixed(1)}`)
      .join(' ')
    return `<polyline points="${path}" fill="none" stroke="${COLOURS[index % COLOURS.length]}" stroke-width="1.5"/>`
  })
  const legend = series
    .filter(({ name }) => name !== '')
    .map(
      ({ name }, index) =>
        `<span style="color:${COLOURS[index % COLOURS.length]}">— ${escapeHtml(name)}</span>`,
    )
    .join(' ')
  return `<figure><figcaption><b>${escapeHtml(title)}</b> ${legend}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">
<path d="M${LEFT_MARGIN} 10V${HEIGHT - BOTTOM_MARGIN}H${WIDTH}" fill="none" stroke="currentColor" stroke-opacity=".4"/>
<text x="${LEFT_MARGIN - 6}" y="16" text-anchor="end">${numberText(maxValue)}</text>
<text x="${LEFT_MARGIN - 6}" y="${HEIGHT - BOTTOM_MARGIN}" text-anchor="end">0</text>
<text x="${WIDTH}" y="${HEIGHT - 4}" text-anchor="end">${numberText(lastMinute)} min</text>
${lines.join('\n')}
</svg></figure>`
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

export function numberText(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`
  if (value >= 1e4) return `${(value / 1e3).toFixed(0)} k`
  return Number(value.toPrecision(3)).toString()
}
