import { type SdkClock } from './clock.js';
/** Does `work` while no other process does any under this lock. Waits for those that live, however long. */
export declare function withFileLock<Answer>(folder: string, work: () => Promise<Answer>, clock: SdkClock): Promise<Answer>;
