/** The one look of all mails: light, and what takes its place in the dark. Every text has contrast of 4.5:1 or more. */
export const LOOK = {
  font: "-apple-system, BlinkMacSystemFont, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
  mono: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  /** Pixels; the width that every mail program shows. */
  width: 600,
  light: {
    page: '#f3f4f7',
    card: '#ffffff',
    border: '#e1e4ea',
    text: '#1b2130',
    muted: '#5b6475',
    accent: '#3451d1',
    onAccent: '#ffffff',
    panel: '#f3f5fb',
  },
  dark: {
    page: '#0f1219',
    card: '#181c26',
    border: '#2c3342',
    text: '#eceff6',
    muted: '#a5aec0',
    accent: '#93a7ff',
    onAccent: '#10152b',
    panel: '#212736',
  },
} as const
