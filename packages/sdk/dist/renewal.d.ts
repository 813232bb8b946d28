import { type AgentTokenSource } from './agent-token-source.js';
import type { SdkClock } from './clock.js';
export interface RenewalOptions {
    tokens: AgentTokenSource;
    clock: SdkClock;
    /** Sends the new token to the hub. */
    present(token: string): void;
    /** Stops the agent if the error is final, and returns whether it did. */
    isFinal(error: unknown): boolean;
}
/** Renews one connection's token in place, before the token expires. */
export declare class Renewal {
    #private;
    constructor(options: RenewalOptions);
    /** The hub reported the remaining lifetime of the current token. */
    schedule(expiresIn: unknown): void;
    /** The hub accepted the new token. */
    accepted(expiresIn: unknown): void;
    /** The hub refused a frame; if that was the renewal, the old token stays in use until it expires. */
    refused(): void;
    /** The hub sent `token_expiring`: renew as soon as the minimum interval and a `Retry-After` permit. */
    expiring(): void;
    stop(): void;
}
