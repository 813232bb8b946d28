import { type AgentTokenSource } from './agent-token-source.js';
import type { SdkClock } from './clock.js';
export interface RenewalOptions {
    tokens: AgentTokenSource;
    clock: SdkClock;
    /** Puts the new token on the wire. */
    present(token: string): void;
    /** Whether an error ends the agent for good; if so it has been dealt with. */
    isFinal(error: unknown): boolean;
}
/** Renews one connection's token in place, before it ends. */
export declare class Renewal {
    #private;
    constructor(options: RenewalOptions);
    /** The hub said how long the token in use still lives. */
    schedule(expiresIn: unknown): void;
    /** The hub accepted the new token. */
    accepted(expiresIn: unknown): void;
    /** The hub refused a frame; if that was the new token, the old one stays for as long as it lives. */
    refused(): void;
    /** The hub warned: sooner than planned, then. */
    expiring(): void;
    stop(): void;
}
