import { type RateWindow, WINDOW_LENGTHS, type WindowName } from '../rate-windows.ts'
import { Mistake } from './mistakes.ts'
import { list, type Parser } from './values.ts'

const MAX_LIMIT = 1_000_000

export const rateWindows: Parser<RateWindow[]> = text => {
  const windows = list(rateWindow)(text)
  if (windows.length === 0) throw new Mistake('must name at least one window')
  if (new Set(windows.map(each => each.window)).size < windows.length)
    throw new Mistake('must name each of minute, hour, day at most once')
  windows.sort((a, b) => WINDOW_LENGTHS[a.window] - WINDOW_LENGTHS[b.window])
  windows.slice(1).forEach((longer, index) => {
    const shorter = windows[index]!
    if (shorter.limit > longer.limit)
      throw new Mistake(
        `allows ${shorter.limit} per ${shorter.window}, more than its ${longer.limit} per ${longer.window}: that window could never be used`,
      )
  })
  return windows
}

export const rateWindowsOrOff: Parser<RateWindow[] | null> = text =>
  text === 'off' ? null : rateWindows(text)

const rateWindow: Parser<RateWindow> = text => {
  const [, limitText = '', window = ''] = /^([1-9]\d{0,6})\/(minute|hour|day)$/.exec(text) ?? []
  const limit = Number(limitText)
  if (!window || limit > MAX_LIMIT)
    throw new Mistake(`must be numbers of at least 1 per minute, hour or day, not ${JSON.stringify(text)}`)
  return { window: window as WindowName, limit }
}
