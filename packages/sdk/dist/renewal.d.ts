import { type AgentTokenSource } from './agent-token-source.js';
import type { SdkClock } from './clock.js';
export interface RenewalOptions {
    tokens: AgentTokenSource;
    clock: SdkClock;
    present(token: string): void;
    /** Stops the agent if the error is final, and returns whether it did. */
    stopIfFinal(error: unknown): boolean;
}
/** Renews one connection's token in place, before the token expires. */
export declare class Renewal {
    #private;
    constructor(options: RenewalOptions);
    /** @param expiresIn the remaining lifetime of the current token in seconds, as the hub reported it */
    schedule(expiresIn: unknown): void;
    /** Called when the hub has accepted the new token. */
    accepted(expiresIn: unknown): void;
    /** Called when the hub has refused a frame. If that was the renewal, the old token stays in use until it expires. */
    refused(): void;
    /** Called when the hub has sent `token_expiring`. Renews as soon as MIN_INTERVAL_MS and a `Retry-After` permit. */
    expiring(): void;
    stop(): void;
}
