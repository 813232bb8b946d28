import { type SdkClock } from './clock.js';
/** Runs `work` while no other process holds this lock. Waits for a living holder, however long. */
export declare function withFileLock<Answer>(folder: string, work: () => Promise<Answer>, clock: SdkClock): Promise<Answer>;
