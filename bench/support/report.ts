import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { machineName } from './machine.ts'

const RESULTS = join(import.meta.dirname, '..', 'results')

export interface Target {
  what: string
  wanted: string
  measured: string
  reached: boolean
}

export type Row = Record<string, string | number>

/** Prints the tables and the targets, and writes them to `bench/results/NAME.json`. */
export function report(name: string, tables: Record<string, Row[]>, targets: Target[]): void {
  for (const [title, rows] of Object.entries(tables)) print(title, rows)
  print(
    'Targets',
    targets.map(({ what, wanted, measured, reached }) => ({
      what,
      wanted,
      measured,
      '': reached ? 'ok' : 'NOT REACHED',
    })),
  )
  mkdirSync(RESULTS, { recursive: true })
  const result = { name, at: new Date().toISOString(), machine: machineName(), tables, targets }
  writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`)
}

function print(title: string, rows: Row[]): void {
  if (rows.length === 0) return
  const columns = Object.keys(rows[0]!)
  const cells = [columns, ...rows.map(row => columns.map(column => cellText(row[column])))]
  const widths = columns.map((_, index) => Math.max(3, ...cells.map(row => row[index]!.length)))
  const line = (row: string[]) => `| ${row.map((cell, index) => cell.padEnd(widths[index]!)).join(' | ')} |`
  const [head, ...body] = cells
  const rule = `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`
  console.log(`\n${title}\n\n${[line(head!), rule, ...body.map(line)].join('\n')}`)
}

function cellText(value: string | number | undefined): string {
  if (typeof value !== 'number') return value ?? ''
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return String(Math.round(value))
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1)
}

/** Whether `--quick` asks for shorter and smaller runs; the documented figures come from full runs. */
export const QUICK = process.argv.includes('--quick')
