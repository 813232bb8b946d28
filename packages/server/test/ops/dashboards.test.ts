import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startKeyway } from './running.ts'

const docs = join(import.meta.dirname, '../../../../docs')
const readDocument = (file: string) => readFileSync(join(docs, file), 'utf8')
const METRIC_NAME = /\b(?:keyway|nodejs|process)_[a-z0-9_]+\b/g

test('the dashboard, the alerts and the documented metrics match those of /metrics', async t => {
  const { url } = await startKeyway(t)
  await fetch(`${url}/nowhere`)
  await fetch(`${url}/v1/me`)
  const text = await (await fetch(`${url}/metrics`)).text()
  const servedMetrics = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!))
  const withoutSuffix = (name: string) => name.replace(/_(bucket|count|sum)$/, '')
  for (const file of ['grafana-dashboard.json', 'alerts.yaml']) {
    const namesInDocument = new Set([...readDocument(file).matchAll(METRIC_NAME)].map(([name]) => name))
    assert.ok(namesInDocument.size >= 8, file)
    for (const name of namesInDocument)
      assert.ok(servedMetrics.has(name) || servedMetrics.has(withoutSuffix(name)), `${file}: ${name}`)
  }
  const ownMetrics = [...servedMetrics].filter(name => name.startsWith('keyway_') && name !== 'keyway_info')
  for (const name of ownMetrics) assert.ok(readDocument('operations.md').includes(`\`${name}\``), name)
})

test('every alert links to a section of the operations manual', () => {
  const anchors = [...readDocument('operations.md').matchAll(/^### (.+)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^a-z0-9 ]/g, '')
      .replaceAll(' ', '-'),
  )
  const runbooks = [...readDocument('alerts.yaml').matchAll(/runbook: docs\/operations\.md#(\S+)/g)]
  assert.ok(runbooks.length >= 8)
  for (const [, anchor] of runbooks) assert.ok(anchors.includes(anchor!), `no chapter ${anchor}`)
  assert.equal(runbooks.length, [...readDocument('alerts.yaml').matchAll(/- alert:/g)].length)
})

test('the dashboard is valid for Grafana: panels with queries that do not overlap', () => {
  const { panels, uid } = JSON.parse(readDocument('grafana-dashboard.json'))
  assert.equal(uid, 'keyway')
  const positions = new Set()
  for (const { title, targets, gridPos, type } of panels) {
    assert.ok(title && type && targets.length > 0)
    for (const { expr } of targets) assert.equal(expr.split('(').length, expr.split(')').length, expr)
    positions.add(`${gridPos.x},${gridPos.y}`)
  }
  assert.equal(positions.size, panels.length)
})
