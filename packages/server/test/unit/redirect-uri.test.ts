import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsRedirectUri, webOriginOf } from '../../src/apps/redirect-uri.ts'

const REGISTERED_URIS = [
  'https://shop.example.com/callback',
  'http://127.0.0.1/callback',
  'http://[::1]:3000/callback?from=keyway',
  'com.example.shop:/callback',
]

test('a redirect URI is accepted as it was registered, and on loopback with any port', () => {
  for (const uri of [
    ...REGISTERED_URIS,
    'http://127.0.0.1:50123/callback',
    'http://[::1]/callback?from=keyway',
    'http://[::1]:65535/callback?from=keyway',
  ])
    assert.ok(acceptsRedirectUri(REGISTERED_URIS, uri), uri)
})

test('a redirect URI that differs from the registered ones in anything else is refused', () => {
  for (const uri of [
    'https://shop.example.com/callback/',
    'https://shop.example.com/callback?x',
    'https://shop.example.com/callback#x',
    'https://shop.example.com/Callback',
    'https://shop.example.com/callback/../callback',
    'https://shop.example.com:443/callback',
    'https://shop.example.com:8443/callback',
    'https://shop.example.com.evil.example/callback',
    'https://shop.example.com@evil.example/callback',
    'https://evil.example/callback',
    'http://shop.example.com/callback',
    'https://127.0.0.1/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://127.0.0.1@evil.example/callback',
    'http://user@127.0.0.1/callback',
    'http://127.0.0.1:1/callback#x',
    'http://127.0.0.1:1/callback?x',
    'http://127.0.0.1:99999/callback',
    'http://127.0.0.1:80/callback',
    'http://127.1:3000/callback',
    'http://localhost/callback',
    'http://127.0.0.2/callback',
    'http://[::1]/callback',
    'com.example.shop:/other',
    'com.example.shop:/callback/x',
    'COM.example.shop:/callback',
    ' https://shop.example.com/callback',
    'https://shop.example.com/callback\n',
    'https:\\\\shop.example.com\\callback',
    '',
  ])
    assert.ok(!acceptsRedirectUri(REGISTERED_URIS, uri), uri)
})

test('only web pages have an origin that browsers send', () => {
  assert.deepEqual(REGISTERED_URIS.map(webOriginOf), [
    'https://shop.example.com',
    'http://127.0.0.1',
    'http://[::1]:3000',
    null,
  ])
})
