import type { AgentDisconnected } from './agent-options.js';
import { KeywayError } from './errors.js';
import type { HubClose } from './hub-connection.js';
import { CLOSE_CODES, type CloseCode } from './protocol.js';
/** How a client should reconnect after a close code. */
export type Reconnect = (typeof CLOSE_CODES)[CloseCode]['reconnect'];
/** Lost connections (1006) and unknown codes are retried after a back-off. */
export declare function reconnectAfter(code: number): Reconnect;
/** Whether the failure is a close of the connection, not an error. */
export declare function isClose(failure: unknown): failure is HubClose;
export declare function closeFromError(failure: unknown): HubClose & Pick<AgentDisconnected, 'cause' | 'error'>;
/** Whether an error of the token exchange stops the agent. `bad_response` does not, since it may come from a proxy. */
export declare function isFinalError(error: unknown): error is KeywayError;
export declare function stopErrorFromExchange(error: KeywayError): KeywayError;
export declare function stopErrorFromClose({ code, reason }: HubClose): KeywayError;
