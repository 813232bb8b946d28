export interface Finding {
  check: string
  ok: boolean
  /** The result, or the problem and what to do. */
  detail: string
}

/** The checks of a running node, for the pages of administrators. */
export interface Examination {
  /** The checks that are cheap enough for every page load. */
  quick(): Promise<Finding[]>
  /**
   * All checks of `keyway doctor`, which include verifying the whole audit and a login to the mail server. Concurrent
   * calls share one run, so that reloading the page does not start another.
   */
  whole(): Promise<Finding[]>
}
