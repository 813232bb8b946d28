import { MAX_REQUEST_LIMIT, REQUEST_WINDOWS, type RequestLimit, type RequestWindow } from '../limits/limit.ts'
import { Mistake } from './mistakes.ts'
import { list, type Parser } from './values.ts'

/** `50/second,10000/day`, at most one of each window, shortest first. */
export const requestLimits: Parser<RequestLimit[]> = text => {
  const limits = list(requestLimit)(text)
  if (limits.length === 0) throw new Mistake('must name at least one window')
  if (new Set(limits.map(({ per }) => per)).size < limits.length)
    throw new Mistake('must name each of second, minute, hour, day at most once')
  return limits.sort((left, right) => REQUEST_WINDOWS.indexOf(left.per) - REQUEST_WINDOWS.indexOf(right.per))
}

const requestLimit: Parser<RequestLimit> = text => {
  const [, limitText = '', per = ''] = /^([1-9]\d{0,9})\/(second|minute|hour|day)$/.exec(text) ?? []
  const limit = Number(limitText)
  if (!per || limit > MAX_REQUEST_LIMIT)
    throw new Mistake(
      `must be numbers of at least 1 per second, minute, hour or day, and ${JSON.stringify(text)} is none`,
    )
  return { limit, per: per as RequestWindow }
}
