/** Prevents automatic replies: RFC 3834, and the header that Exchange reads instead. */
export const AUTOMATIC_HEADERS = {
  'Auto-Submitted': 'auto-generated',
  'X-Auto-Response-Suppress': 'All',
}
