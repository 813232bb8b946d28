/** What a mail says, free of how it looks: written once, shown as HTML and as plain text. */
export interface Letter {
  template: string
  subject: string
  /** What mail programs show beside the subject. */
  preheader: string
  heading: string
  body: Block[]
  /** Small print. */
  notes: string[]
  /** Before the support address. */
  support: string
  link: string | null
  code: string | null
}

export type Block =
  | { kind: 'paragraph'; text: string }
  | { kind: 'button'; label: string; url: string; urlLabel: string }
  | { kind: 'code'; label: string; code: string }
  | { kind: 'facts'; rows: [label: string, value: string][] }
