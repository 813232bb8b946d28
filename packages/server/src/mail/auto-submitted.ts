/** Prevents automatic replies: the header of RFC 3834, and the one that Microsoft Exchange reads instead. */
export const AUTOMATIC_HEADERS = {
  'Auto-Submitted': 'auto-generated',
  'X-Auto-Response-Suppress': 'All',
}
