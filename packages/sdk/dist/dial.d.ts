import type { AgentTokenSource } from './agent-token-source.js';
import type { SdkClock } from './clock.js';
import type { HubConnection } from './hub-connection.js';
export interface DialOptions {
    tokens: Pick<AgentTokenSource, 'get'>;
    clock: SdkClock;
    open(token: string): HubConnection;
    /** At most once: why there is no connection. Not called after `succeeded` or `giveUp`. */
    onFailed(why: unknown): void;
}
/** One attempt to be connected: a token, a handshake, and `ready` within 10 s. */
export declare class Dial {
    #private;
    constructor(options: DialOptions);
    owns(connection: HubConnection): boolean;
    /** Its connection is ready, and no longer its matter. */
    succeeded(): void;
    giveUp(): void;
    fail(why: unknown): void;
}
