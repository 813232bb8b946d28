import { localization } from '../../languages/current.ts'
import { readOwnFile } from '../../own-files.ts'
import { type RenderedDocument, renderMarkdown } from './markdown.ts'

export type Group = 'guides' | 'operators'

export interface Guide {
  slug: string
  /** The label in the menu. */
  label: string
  group: Group
  /** Path below the root of the project. */
  file: string
}

/** The documents that are shown; those of the group `operators` only to administrators and support. */
export const GUIDES: readonly Guide[] = [
  { slug: 'quickstart', label: 'Quickstart', group: 'guides', file: 'docs/quickstart.md' },
  { slug: 'javascript', label: 'TypeScript and JavaScript', group: 'guides', file: 'packages/sdk/README.md' },
  { slug: 'python', label: 'Python', group: 'guides', file: 'packages/python/README.md' },
  { slug: 'agents', label: 'Agents and the hub', group: 'guides', file: 'docs/hub-protocol.md' },
  { slug: 'oauth', label: 'OAuth and OpenID Connect', group: 'guides', file: 'docs/oauth.md' },
  { slug: 'metering', label: 'Limits and metering', group: 'guides', file: 'docs/metering.md' },
  { slug: 'operations', label: 'Operations', group: 'operators', file: 'docs/operations.md' },
  { slug: 'configuration', label: 'Configuration', group: 'operators', file: 'docs/configuration.md' },
  { slug: 'webhooks', label: 'Webhooks', group: 'operators', file: 'docs/webhooks.md' },
]

/** Origins of the examples in guides of the group `guides`, which are replaced by the service's own origin. */
const EXAMPLE_ORIGINS = ['https://keyway.example.com', 'http://localhost:8080']

export interface Library {
  /** Renders a document on its first use in each language, since the labels of its buttons are translated. */
  read(guide: Guide): RenderedDocument
}

export function createLibrary(publicUrl: string): Library {
  const renderedDocuments = new Map<string, RenderedDocument>()
  return {
    read(guide) {
      const name = `${guide.slug} ${localization().tag}`
      const document = renderedDocuments.get(name) ?? render(guide, publicUrl)
      renderedDocuments.set(name, document)
      return document
    },
  }
}

function render(guide: Guide, publicUrl: string): RenderedDocument {
  const source = readOwnFile(guide.file).toString()
  return renderMarkdown(source, {
    resolveLink: target => resolveLink(target, guide.file),
    // Examples for operators are about settings, so their addresses are not replaced by the service's own.
    personalize: text => (guide.group === 'guides' ? withOrigin(text, publicUrl) : text),
  })
}

/** The URL of a link: that of a shown document, or an absolute target unchanged; null for other files. */
function resolveLink(target: string, from: string): string | null {
  if (/^(?:https?:|mailto:|#|\/)/.test(target)) return target
  const { pathname, hash } = new URL(target, new URL(from, 'file:///'))
  const guide = GUIDES.find(({ file }) => `/${file}` === pathname)
  return guide ? `/docs/${guide.slug}${hash}` : null
}

function withOrigin(text: string, publicUrl: string): string {
  let result = text
  for (const origin of EXAMPLE_ORIGINS) {
    result = result.replaceAll(origin, publicUrl)
    result = result.replaceAll(origin.replace(/^http/, 'ws'), publicUrl.replace(/^http/, 'ws'))
  }
  return result
}
