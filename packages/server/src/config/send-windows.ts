import { type SendWindow, WINDOW_LENGTHS, type WindowName } from '../magic-links/send-limits.ts'
import { Mistake } from './mistakes.ts'
import { list, type Parser } from './values.ts'

const MAX_LIMIT = 1_000_000

export const sendWindows: Parser<SendWindow[]> = text => {
  const windows = list(sendWindow)(text)
  if (windows.length === 0) throw new Mistake('must name at least one window')
  if (new Set(windows.map(each => each.window)).size < windows.length)
    throw new Mistake('must name each of minute, hour, day at most once')
  windows.sort((left, right) => WINDOW_LENGTHS[left.window] - WINDOW_LENGTHS[right.window])
  windows.slice(1).forEach((longer, index) => {
    const shorter = windows[index]!
    if (shorter.limit > longer.limit)
      throw new Mistake(
        `allows ${shorter.limit} per ${shorter.window}, more than its ${longer.limit} per ${longer.window}: that window could never be used`,
      )
  })
  return windows
}

export const sendWindowsOrOff: Parser<SendWindow[] | null> = text =>
  text === 'off' ? null : sendWindows(text)

const sendWindow: Parser<SendWindow> = text => {
  const [, limitText = '', window = ''] = /^([1-9]\d{0,6})\/(minute|hour|day)$/.exec(text) ?? []
  const limit = Number(limitText)
  if (!window || limit > MAX_LIMIT)
    throw new Mistake(
      `must be numbers of at least 1 per minute, hour or day, and ${JSON.stringify(text)} is none`,
    )
  return { window: window as WindowName, limit }
}
