import { html, raw } from 'hono/html'
import type { Html } from './layout.ts'

/** SVG units: the width of a bucket, the width of its bar, and the height of the highest bar. */
const BUCKET_WIDTH = 10
const BAR_WIDTH = 8
const HEIGHT = 60

export interface Series {
  /** A CSS class with the colour: `uses`, `denied` or `level`, which is drawn without gaps. */
  kind: 'uses' | 'denied' | 'level'
  /** One value for each bucket; null if it is unknown. */
  values: readonly (number | null)[]
}

export interface Chart {
  /** An id that is unique on the page. */
  id: string
  title: string
  /** The main number, such as the total of the period, and a note on it. */
  figure: string
  note: string
  /** A description for readers who do not see the chart. */
  description: string
  /** The first one is at the bottom of the stack. */
  series: readonly Series[]
  /** Labels below the first and the last bucket. */
  from: string
  to: string
}

/** A bar chart that needs no scripts. The page must show its numbers as a table too. */
export function chart({ id, title, figure, note, description, series, from, to }: Chart): Html {
  const count = series[0]?.values.length ?? 0
  const highest = Math.max(...Array.from({ length: count }, (_, at) => sumAt(series, at)))
  return html`<figure class="chart"><figcaption><h2>${title}</h2><p class="figure">${figure}</p><p class="quiet">${note}</p></figcaption>
<svg viewBox="0 0 ${count * BUCKET_WIDTH} ${HEIGHT}" role="img" aria-labelledby="${id}-title ${id}-desc" preserveAspectRatio="none"><title id="${id}-title">${title}</title><desc id="${id}-desc">${description}</desc>${series.map((each, index) => html`<path class="${each.kind}" d="${raw(pathOf(series, index, highest))}"/>`)}</svg>
<p class="axis" aria-hidden="true"><span>${from}</span><span>${to}</span></p></figure>`
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}

/** All bars of a series as one SVG path, to keep pages small. The bar of a number above 0 is at least one unit high. */
function pathOf(series: readonly Series[], index: number, highest: number): string {
  const { kind, values } = series[index]!
  const width = kind === 'level' ? BUCKET_WIDTH : BAR_WIDTH
  return values
    .map((value, at) => {
      const height = heightOf(value, highest)
      if (height === 0) return ''
      const bottom = series
        .slice(0, index)
        .reduce((sum, each) => sum + heightOf(each.values[at]!, highest), 0)
      return `M${at * BUCKET_WIDTH} ${Math.max(0, HEIGHT - bottom - height)}h${width}v${height}h-${width}z`
    })
    .join('')
}

function heightOf(value: number | null, highest: number): number {
  return value ? Math.max(1, Math.round((value / highest) * HEIGHT)) : 0
}

function sumAt(series: readonly Series[], at: number): number {
  return series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0)
}
