/** RFC 3834, and what Exchange obeys instead: nobody's absence note shall answer. */
export const AUTOMATIC_HEADERS = {
  'Auto-Submitted': 'auto-generated',
  'X-Auto-Response-Suppress': 'All',
}
