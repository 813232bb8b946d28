import { type SdkClock } from './clock.js';
/** Runs `work` while no other process runs any under this lock. Waits for living holders, however long. */
export declare function withFileLock<Answer>(folder: string, work: () => Promise<Answer>, clock: SdkClock): Promise<Answer>;
