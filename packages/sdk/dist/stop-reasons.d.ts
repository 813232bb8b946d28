import { KeywayError } from './errors.js';
import type { HubClosed } from './hub-connection.js';
import { CLOSE_CODES, type CloseCode } from './protocol.js';
/** What a client shall do after a close code. */
export type Reconnect = (typeof CLOSE_CODES)[CloseCode]['reconnect'];
/** A line that broke, and codes that nobody told us of, are tried again. */
export declare function reconnectAfter(code: number): Reconnect;
/** Whether an error of the token exchange ends the agent for good. */
export declare function isFinalError(error: unknown): error is KeywayError;
/** The error of an agent that the service refused for good at the exchange. */
export declare function stopErrorFromExchange(error: KeywayError): KeywayError;
/** The error of an agent whose connection was closed for good. */
export declare function stopErrorFromClose({ code, reason }: HubClosed): KeywayError;
