/** A plausible bug that the suite once did not detect: its edits, and the tests that must fail. */
export interface Mistake {
  name: string
  /** The file to change, as a path below packages/. */
  file: string
  /** Replaces `find`, which must occur once, by `put`: JavaScript, since the file runs with its types stripped. */
  edits: { find: string; put: string }[]
  /** Test files below packages/; the run ends with the first failure. */
  tests: string[]
}

const SERVER_TESTS = 'server/test'

export const MISTAKES: Mistake[] = [
  {
    name: 'a renewal loads the status of the new key before it is registered under it',
    file: 'server/src/hub/renewals.ts',
    edits: [
      { find: '    bindNewKey(connection, claims.keyId)\n', put: '' },
      {
        find: 'await keyStatuses.loadFor(connection, claims.keyId, nodesNotified)\n',
        put: 'await keyStatuses.loadFor(connection, claims.keyId, nodesNotified)\n    bindNewKey(connection, claims.keyId)\n',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/races.test.ts`],
  },
  {
    name: 'no second token_expiring after a renewal',
    file: 'server/src/hub/renewals.ts',
    edits: [
      {
        find: '    if (connection.expiresAt > previousExpiry) connection.expiryNoticeSent = false\n',
        put: '',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/connection.test.ts`],
  },
  {
    name: 'a key that is revoked while its status is loaded is not loaded again',
    file: 'server/src/hub/revocations.ts',
    edits: [
      {
        find: 'for (const connection of registry.ofKey(keyId)) connection.statusIsStale = true\n',
        put: '\n',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/races.test.ts`],
  },
  {
    name: 'a status that a change made stale is used all the same',
    file: 'server/src/hub/key-status-loader.ts',
    edits: [{ find: 'if (!connection.statusIsStale) return status', put: 'return status' }],
    tests: [`${SERVER_TESTS}/hub/key-status-loader.test.ts`],
  },
  {
    name: 'the sweep misses an ending that was committed 30 s late',
    file: 'server/src/hub/revocations.ts',
    edits: [{ find: 'SWEEP_WINDOW_MS = MINUTE', put: 'SWEEP_WINDOW_MS = 20 * SECOND' }],
    tests: [`${SERVER_TESTS}/hub/races.test.ts`],
  },
  {
    name: 'an agent that sends nothing but protocol pings is silent',
    file: 'server/src/hub/frames.ts',
    edits: [
      {
        find: "if (charge(connection, 1) === 'pass') connection.pong(data)\n",
        put:
          'const before = connection.lastReceivedAt\n' +
          "      if (charge(connection, 1) === 'pass') connection.pong(data)\n" +
          '      connection.lastReceivedAt = before\n',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/connection.test.ts`],
  },
  {
    name: 'an agent that does nothing but answer pings is silent',
    file: 'server/src/hub/frames.ts',
    edits: [
      {
        find: 'receivePong(connection) {\n      charge(connection, 1)\n',
        put:
          'receivePong(connection) {\n      const before = connection.lastReceivedAt\n' +
          '      charge(connection, 1)\n      connection.lastReceivedAt = before\n',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/connection.test.ts`],
  },
  {
    name: 'pongs are not limited',
    file: 'server/src/hub/frames.ts',
    edits: [
      {
        find: 'receivePong(connection) {\n      charge(connection, 1)\n',
        put: 'receivePong(connection) {\n      connection.lastReceivedAt = clock.now()\n',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/frames.test.ts`],
  },
  {
    name: 'a connection is registered after its key status was loaded',
    file: 'server/src/hub/ready.ts',
    edits: [
      { find: '    registry.add(connection)\n', put: '' },
      {
        find: 'await keyStatuses.loadFor(connection, connection.keyId, nodesNotified)\n',
        put: 'await keyStatuses.loadFor(connection, connection.keyId, nodesNotified)\n    registry.add(connection)\n',
      },
    ],
    tests: [`${SERVER_TESTS}/hub/races.test.ts`],
  },
  {
    name: 'good handshakes are counted as bad ones',
    file: 'server/src/hub/rate-limits.ts',
    edits: [{ find: 'if (bucket) bucket.level += 1', put: '' }],
    tests: [`${SERVER_TESTS}/hub/handshake.test.ts`],
  },
  {
    name: 'sends without a receiver are not counted',
    file: 'server/src/hub/messages.ts',
    edits: [{ find: 'Math.max(1, targets.length)', put: 'targets.length' }],
    tests: [`${SERVER_TESTS}/hub/limits.test.ts`],
  },
  {
    name: 'removals from presence whose write failed are forgotten',
    file: 'server/src/hub/presence.ts',
    edits: [{ find: 'for (const id of removedIds) removedConnectionIds.add(id)', put: '' }],
    tests: [`${SERVER_TESTS}/hub/races.test.ts`],
  },
  {
    name: 'the feed passes over endings that were committed late',
    file: 'server/src/endings/revocation-feed.ts',
    edits: [{ find: '{ at: now - LATE_COMMIT_MARGIN, id: FIRST_ID }', put: '{ at: now, id: FIRST_ID }' }],
    tests: [`${SERVER_TESTS}/flows/late-commits.test.ts`],
  },
  {
    name: 'a restore passes over journal entries that were committed late',
    file: 'server/src/backup/restore.ts',
    edits: [{ find: 'header.created_at - MAX_COMMIT_DELAY', put: 'header.created_at' }],
    tests: [`${SERVER_TESTS}/backup/failover-replay.test.ts`],
  },
  {
    name: 'what is sealed for one row opens in another',
    file: 'server/src/secrets.ts',
    edits: [
      { find: 'cipher.setAAD(Buffer.from(context))\n      const body', put: 'const body' },
      { find: 'decipher.setAAD(Buffer.from(context))\n', put: '' },
    ],
    tests: [`${SERVER_TESTS}/unit/secrets.test.ts`],
  },
  {
    name: 'what is sealed for one column opens in another',
    file: 'server/src/secrets.ts',
    edits: [{ find: "root.bytes, 'keyway', purpose, 32", put: "root.bytes, 'keyway', 'any', 32" }],
    tests: [`${SERVER_TESTS}/unit/secrets.test.ts`],
  },
  {
    name: 'a wrong code reveals that its account is suspended',
    file: 'server/src/magic-links/verify.ts',
    edits: [
      {
        find: "    const presentedLink = 'code' in proof",
        put: "    if ((await storage.store.users.findByEmail(proof.email))?.status === 'suspended') throw linkRefusalError('account_suspended')\n    const presentedLink = 'code' in proof",
      },
    ],
    tests: [`${SERVER_TESTS}/flows/typed-codes.test.ts`],
  },
  {
    name: 'a rotation revives a session that has ended',
    file: 'server/src/storage/sessions.ts',
    edits: [
      {
        find: ".where('counter', '=', counter)\n        .where('ended_at', 'is', null)\n",
        put: ".where('counter', '=', counter)\n",
      },
    ],
    tests: [`${SERVER_TESTS}/contract/sessions.test.ts`],
  },
  {
    name: 'a transaction that is retried journals all of its attempts',
    file: 'server/src/services.ts',
    edits: [
      { find: 'facts = tx.facts\n', put: 'facts = Object.assign(tx.facts, [...facts, ...tx.facts])\n' },
    ],
    tests: [`${SERVER_TESTS}/flows/late-commits.test.ts`],
  },
  {
    name: 'events leave after a commit that failed',
    file: 'server/src/storage/sqlite-group-commit.ts',
    edits: [{ find: 'reject(unavailable(error))\n      return\n', put: 'reject(unavailable(error))\n' }],
    tests: [`${SERVER_TESTS}/contract/sqlite.test.ts`],
  },
  {
    name: 'resealing stops after the first batch',
    file: 'server/src/operations/reseal.ts',
    edits: [{ find: 'if (values.length < BATCH) break', put: 'break' }],
    tests: [`${SERVER_TESTS}/operations/reseal.test.ts`],
  },
  {
    name: 'a use of a key during a flush is lost',
    file: 'server/src/api-keys/last-used.ts',
    edits: [
      { find: 'if (latestUses.get(id)?.at === at) latestUses.delete(id)', put: 'latestUses.delete(id)' },
    ],
    tests: [`${SERVER_TESTS}/flows/api-keys.test.ts`],
  },
  {
    name: 'uses that are not stored yet are lost when the server closes',
    file: 'server/src/server.ts',
    edits: [{ find: 'await services.apiKeys\n      .flushUses()\n', put: 'await Promise.resolve()\n' }],
    tests: [`${SERVER_TESTS}/flows/*key*.test.ts`, `${SERVER_TESTS}/ops/*.test.ts`],
  },
  {
    name: 'a 429 names the setting to everybody',
    file: 'server/src/http/app.ts',
    edits: [{ find: 'namesSettings: options.hasInbox', put: 'namesSettings: true' }],
    tests: [`${SERVER_TESTS}/http/keys.test.ts`],
  },
  {
    name: 'every request by an unlisted proxy is a warning',
    file: 'server/src/http/proxy-watch.ts',
    edits: [
      {
        find: '    if (lastWarnedAt !== undefined && now() - lastWarnedAt < WARN_AGAIN_MS) return\n',
        put: '',
      },
    ],
    tests: [`${SERVER_TESTS}/http/caller.test.ts`],
  },
  {
    name: 'presence rows of dead nodes are kept permanently',
    file: 'server/src/operations/housekeeping.ts',
    edits: [{ find: 'async batch => (await prunePresence(batch, now)).removed,\n', put: '\n' }],
    tests: [`${SERVER_TESTS}/ops/housekeeping.test.ts`],
  },
  {
    name: 'suppressions that have ended are kept permanently',
    file: 'server/src/operations/housekeeping.ts',
    edits: [{ find: 'batch => store.suppressions.prune(now, batch),\n', put: '\n' }],
    tests: [`${SERVER_TESTS}/ops/housekeeping.test.ts`],
  },
  {
    name: 'equal numbers in two windows are refused',
    file: 'server/src/config/rate-windows.ts',
    edits: [{ find: 'shorter.limit > longer.limit', put: 'shorter.limit >= longer.limit' }],
    tests: [`${SERVER_TESTS}/config/config.test.ts`],
  },
  {
    name: 'a forged token is remembered before its signature was checked',
    file: 'server/src/signing-keys/jwt.ts',
    edits: [
      {
        find: '    const bytes = decode(signature)\n',
        put: '    knownTokens.add(token)\n    const bytes = decode(signature)\n',
      },
    ],
    tests: [`${SERVER_TESTS}/unit/known-tokens.test.ts`],
  },
  {
    name: 'locks are taken in the order in which they were named',
    file: 'server/src/storage/send-limits.ts',
    edits: [
      { find: 'const names = [...new Set(buckets)].sort()', put: 'const names = [...new Set(buckets)]' },
    ],
    tests: [`${SERVER_TESTS}/contract/magic-links.test.ts`],
  },
  {
    name: 'SDK: a refused token is used for the next connect',
    file: 'sdk/src/agent.ts',
    edits: [{ find: "if (reconnect === 'exchange') this.#tokens.forget()", put: '' }],
    tests: ['sdk/test/agent.test.ts'],
  },
  {
    name: 'SDK: a refused renewal token is used again',
    file: 'sdk/src/renewal.ts',
    edits: [{ find: 'this.#options.tokens.forget()', put: '' }],
    tests: ['sdk/test/agent.test.ts'],
  },
  {
    name: 'SDK: a handover buffers the messages of every connection',
    file: 'sdk/src/handover.ts',
    edits: [{ find: 'if (this.#inProgress?.to === connection) this', put: 'if (this.#inProgress) this' }],
    tests: ['sdk/test/agent.test.ts'],
  },
  {
    name: 'SDK: a handover continues after its new connection was closed',
    file: 'sdk/src/handover.ts',
    edits: [{ find: ' || this.#inProgress?.to === connection', put: '' }],
    tests: ['sdk/test/agent.test.ts'],
  },
]
