import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type Hex, leastContrast, nearestLegible } from '../../src/brand/colors.ts'
import { ConfigError, loadConfig } from '../../src/config.ts'
import { pngOf, svgOf } from '../support/images.ts'

function mistakeOf(settings: Record<string, string>): string {
  try {
    loadConfig(settings)
  } catch (error) {
    if (error instanceof ConfigError && error.mistakes.length === 1) return error.mistakes[0]!
    throw error
  }
  throw new Error('the settings were accepted')
}

function writeTemporaryFile(t: TestContext, name: string, content: string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-brand-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

describe('the accent colour', () => {
  test('is legible in both themes if it is not set', () => {
    const { accent } = loadConfig({}).brand
    assert.ok(leastContrast(accent.light.accent, 'light') >= 4.5)
    assert.ok(leastContrast(accent.dark.accent, 'dark') >= 4.5)
  })

  test('of the dark theme is derived if only one is set, and is legible for every hue', () => {
    for (let hue = 0; hue < 360; hue += 15) {
      const light = nearestLegible(hexOf(hue), 'light')
      const { accent } = loadConfig({ KEYWAY_ACCENT_COLOR: light }).brand
      assert.equal(accent.light.accent, light)
      assert.ok(leastContrast(accent.dark.accent, 'dark') >= 4.5, `${light} ${accent.dark.accent}`)
    }
  })

  test('with too little contrast is refused, with the nearest usable colour, which is accepted', () => {
    for (const [given, theme] of [
      ['#ffcc00', 'light'],
      ['#e11d48', 'light'],
      ['#3a4fcb,#3a4fcb', 'dark'],
    ] as const) {
      const mistake = mistakeOf({ KEYWAY_ACCENT_COLOR: given })
      assert.match(
        mistake,
        new RegExp(
          `^KEYWAY_ACCENT_COLOR has too little contrast in the ${theme} theme: .+ would have \\d\\.\\d:1`,
        ),
      )
      const [, nearest] = /nearest usable colour is (#[0-9a-f]{6})\./.exec(mistake)!
      const acceptedSetting = given.includes(',') ? `#3a4fcb,${nearest}` : nearest!
      assert.equal(loadConfig({ KEYWAY_ACCENT_COLOR: acceptedSetting }).brand.accent[theme].accent, nearest)
    }
  })

  test('is #rgb or #rrggbb, once or twice', () => {
    assert.equal(loadConfig({ KEYWAY_ACCENT_COLOR: '#046' }).brand.accent.light.accent, '#004466')
    for (const wrong of ['blue', '#12345', '#004466,', '#004466,#ccddff,#fff', 'rgb(0,0,0)'])
      assert.match(mistakeOf({ KEYWAY_ACCENT_COLOR: wrong }), /must be one colour as #rrggbb, or two/)
  })
})

describe('images of the operator', () => {
  test('are recognised by their bytes, whatever their name is', t => {
    const { brand } = loadConfig({
      KEYWAY_LOGO: writeTemporaryFile(t, 'logo.png', svgOf()),
      KEYWAY_FAVICON: writeTemporaryFile(t, 'favicon', pngOf(32, 32)),
      KEYWAY_TOUCH_ICON: writeTemporaryFile(t, 'touch.svg', pngOf(180, 180)),
    })
    assert.deepEqual([brand.logo!.type, brand.logo!.width, brand.logo!.height], ['image/svg+xml', 40, 10])
    assert.deepEqual([brand.favicon!.type, brand.favicon!.width], ['image/png', 32])
    assert.equal(brand.touchIcon!.width, 180)
  })

  for (const [title, content, pattern] of [
    ['that is missing', null, /cannot be read \(ENOENT\)/],
    ['that is no image', '<html><svg></svg></html>', /is neither a PNG nor an SVG/],
    ['that is a GIF', 'GIF89a', /is neither a PNG nor an SVG/],
    ['that is cut off', pngOf(40, 40).subarray(0, 60), /is a PNG that is cut off/],
    ['that is too large', Buffer.alloc(256 * 1024 + 1), /has 257 KiB, and at most 256 are allowed/],
    ['that is too small', pngOf(8, 8), /at least 16 pixels on each side, not 8 × 8/],
  ] as const) {
    test(`an image ${title} is a mistake that says so`, t => {
      const file = content === null ? '/nonexistent/logo.png' : writeTemporaryFile(t, 'logo.png', content)
      const mistake = mistakeOf({ KEYWAY_LOGO: file })
      assert.match(mistake, pattern)
      assert.match(mistake, /^KEYWAY_LOGO ".+" .+ Example: KEYWAY_LOGO=/)
    })
  }

  test('an icon that is not square, or of another kind, is a mistake', t => {
    assert.match(
      mistakeOf({ KEYWAY_FAVICON: writeTemporaryFile(t, 'a', pngOf(32, 20)) }),
      /must be as wide as high, not 32 × 20/,
    )
    assert.match(
      mistakeOf({ KEYWAY_TOUCH_ICON: writeTemporaryFile(t, 'a', svgOf('', '0 0 9 9')) }),
      /is another kind of image: it must be a PNG/,
    )
    assert.match(
      mistakeOf({ KEYWAY_TOUCH_ICON: writeTemporaryFile(t, 'a', pngOf(60, 60)) }),
      /at least 120 pixels/,
    )
    assert.match(
      mistakeOf({ KEYWAY_LOGO_DARK: writeTemporaryFile(t, 'a', svgOf()) }),
      /is set without KEYWAY_LOGO/,
    )
  })

  test('an address instead of a file is a mistake', () => {
    assert.match(mistakeOf({ KEYWAY_LOGO: 'https://cdn.example.com/logo.svg' }), /must be the path of a file/)
  })

  for (const [what, content] of [
    ['a script', '<script>alert(1)</script>'],
    ['a script with a prefix', '<svg:script href="#a"/>'],
    ['an event handler', '<rect onload="alert(1)"/>'],
    ['foreign content', '<foreignObject><p>hi</p></foreignObject>'],
    ['an address with a script', '<a href="javascript:alert(1)"><rect/></a>'],
    ['a file of another server', '<image href="https://evil.example/x.png"/>'],
    ['another document', '<use xlink:href="other.svg#x"/>'],
    ['an image in a style', '<rect style="fill:url(https://evil.example/x)"/>'],
    ['an imported style', '<style>@import "https://evil.example/x.css"</style>'],
    ['an embedded page', '<image href="data:text/html,hi"/>'],
  ] as const) {
    test(`an SVG with ${what} is refused`, t => {
      assert.match(
        mistakeOf({ KEYWAY_LOGO: writeTemporaryFile(t, 'logo.svg', svgOf(content)) }),
        /is an SVG that (contains|refers)/,
      )
    })
  }

  test('an SVG that declares entities is refused', t => {
    const file = writeTemporaryFile(
      t,
      'logo.svg',
      `<!DOCTYPE svg [<!ENTITY a "aaaa">]>${svgOf('<text>&a;</text>').slice(22)}`,
    )
    assert.match(mistakeOf({ KEYWAY_LOGO: file }), /is an SVG that declares entities/)
  })

  test('an SVG with gradients, own references and embedded pictures is accepted', t => {
    const content =
      '<defs><linearGradient id="a"/></defs><rect fill="url(#a)"/><use href="#b"/><image href="data:image/png;base64,AAAA"/>'
    assert.ok(loadConfig({ KEYWAY_LOGO: writeTemporaryFile(t, 'logo.svg', svgOf(content)) }).brand.logo)
  })
})

test("links to the operator's pages are https", () => {
  const { links } = loadConfig({
    KEYWAY_TERMS_URL: 'https://example.com/terms',
    KEYWAY_PRIVACY_URL: 'http://localhost:3000/privacy',
  }).brand
  assert.deepEqual(links, {
    terms: 'https://example.com/terms',
    privacy: 'http://localhost:3000/privacy',
    support: null,
  })
  for (const wrong of ['http://example.com/', 'javascript:alert(1)', '/terms', 'https://a:b@example.com'])
    assert.match(mistakeOf({ KEYWAY_SUPPORT_URL: wrong }), /^KEYWAY_SUPPORT_URL must be an https URL/)
})

/** The fully saturated colour of a hue in degrees. */
function hexOf(hue: number): Hex {
  const channel = (shift: number) => {
    const at = (shift + hue / 30) % 12
    return Math.round(255 * (0.5 - 0.5 * Math.max(-1, Math.min(at - 3, 9 - at, 1))))
      .toString(16)
      .padStart(2, '0')
  }
  return `#${channel(0)}${channel(8)}${channel(4)}`
}
