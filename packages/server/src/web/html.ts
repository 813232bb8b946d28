import type { HtmlEscapedString } from 'hono/utils/html'

/** Escaped markup, as the `html` template of Hono returns it. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>
