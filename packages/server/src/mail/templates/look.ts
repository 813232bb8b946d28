/** The one look of all mails, with the colours of the pages: light, and what takes its place in the dark. Every text has contrast of 4.5:1 or more. */
export const LOOK = {
  font: "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
  mono: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  /** Pixels; the width that every mail program shows. */
  width: 600,
  light: {
    page: '#f6f7f9',
    card: '#ffffff',
    border: '#e4e7ed',
    text: '#181c25',
    muted: '#596171',
    accent: '#3a4fcb',
    onAccent: '#ffffff',
    panel: '#f3f4f8',
  },
  dark: {
    page: '#0f1217',
    card: '#171b22',
    border: '#2a313c',
    text: '#edf0f6',
    muted: '#a4adbc',
    accent: '#a6b6ff',
    onAccent: '#10163a',
    panel: '#212733',
  },
} as const
