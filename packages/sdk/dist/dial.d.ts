import type { AgentTokenSource } from './agent-token-source.js';
import type { SdkClock } from './clock.js';
import type { HubConnection } from './hub-connection.js';
export interface DialOptions {
    tokens: Pick<AgentTokenSource, 'get'>;
    clock: SdkClock;
    open(token: string): HubConnection;
    /** Called at most once, when the attempt fails; never after `finish` or `giveUp`. */
    onFailed(failure: unknown): void;
}
/** One connection attempt: token, handshake, and `ready` within 10 s. */
export declare class Dial {
    #private;
    constructor(options: DialOptions);
    owns(connection: HubConnection): boolean;
    /** Ends the attempt and leaves its connection open. */
    finish(): void;
    giveUp(): void;
    fail(failure: unknown): void;
}
