#!/usr/bin/env node
import { Agent } from './agent.js';
import { KeywayError } from './errors.js';
/**
 * A demo agent: connects, prints its events, and echoes messages. Settings are KEYWAY_URL and KEYWAY_API_KEY.
 *
 * Exit status: 0 when asked to end, 77 (EX_NOPERM, sysexits.h) when the service stopped it for good. Tell a service
 * manager not to restart it then: `RestartPreventExitStatus=77`.
 */
const STOPPED_FOR_GOOD = 77;
const WRONG_SETTINGS = 78;
const { process } = globalThis;
function say(text) {
    console.log(`${new Date().toISOString()} ${text}`);
}
function run(agent) {
    agent
        .on('ready', ({ connectionId, keyName }) => say(`ready: connection ${connectionId}, key ${keyName ?? '(unnamed)'}`))
        .on('renewed', ({ expiresIn }) => say(`renewed: good for ${expiresIn} s`))
        .on('disconnected', ({ code, reason, willReconnect, retryInMs = 0 }) => {
        const next = willReconnect ? `trying again in ${(retryInMs / 1000).toFixed(1)} s` : 'not coming back';
        say(`disconnected: ${code} ${reason}, ${next}`);
    })
        .on('message', ({ from, data }) => {
        say(`message from ${from}: ${JSON.stringify(data)}`);
        // Messages sent over HTTP have no connection to reply to, and echoing an echo would loop forever.
        if (from !== 'api' && !isEcho(data))
            agent.send(from, { echo: data }).catch(error => say(`not sent: ${error.message}`));
    })
        .on('stopped', ({ error }) => {
        say(error ? `stopped: ${error.message}` : 'stopped');
        process.exitCode = error ? STOPPED_FOR_GOOD : 0;
    });
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.once(signal, () => agent.close());
}
function isEcho(data) {
    return typeof data === 'object' && data !== null && 'echo' in data;
}
try {
    run(new Agent());
}
catch (error) {
    if (!(error instanceof KeywayError))
        throw error;
    console.error(error.message);
    process.exit(error.code === 'invalid_api_key' ? STOPPED_FOR_GOOD : WRONG_SETTINGS);
}
