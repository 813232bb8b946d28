import { parseRequestLimit, type RequestLimit, sortedRequestLimits } from '../limits/limit.ts'
import { Mistake } from './mistakes.ts'
import { list, type Parser } from './values.ts'

/** Parses `50/second,10000/day`, with each window at most once; returns the shortest window first. */
export const requestLimits: Parser<RequestLimit[]> = text => {
  const limits = list(requestLimit)(text)
  if (limits.length === 0) throw new Mistake('must name at least one window')
  const sortedLimits = sortedRequestLimits(limits)
  if (!sortedLimits) throw new Mistake('must name each of second, minute, hour, day at most once')
  return sortedLimits
}

const requestLimit: Parser<RequestLimit> = text => {
  const limit = parseRequestLimit(text)
  if (limit) return limit
  throw new Mistake(
    `must be numbers of at least 1 per second, minute, hour or day, and ${JSON.stringify(text)} is none`,
  )
}
