import { DAY, HOUR, MINUTE } from '../clock.ts'

export type WindowName = 'minute' | 'hour' | 'day'

export const WINDOW_LENGTHS: Record<WindowName, number> = { minute: MINUTE, hour: HOUR, day: DAY }

/** At most `limit` accepted sends in any stretch of time as long as the window. */
export interface SendWindow {
  window: WindowName
  limit: number
}

/** A counter of its own: one address, one client network, one returning browser. */
export interface SendBucket {
  /** `address:…` or `network:…` */
  name: string
  windows: readonly SendWindow[]
  /** The setting that an operator would change. */
  setting: string
}
