/** Exit statuses of the command besides 0 (success). Except for 1, they are those of sysexits.h. */
export const EXIT_FAILED = 1
/** `EX_USAGE`: invalid command line. */
export const EXIT_USAGE = 64
/** `EX_CONFIG`: a setting is wrong, or the operator must remove what prevents the start. */
export const EXIT_CONFIGURATION = 78

/** An error that the operator can fix. Only its message is shown: one sentence that says what to do. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError'
  readonly exitStatus: number = EXIT_FAILED
}

/** The process cannot start with these settings; not retryable. */
export class CannotStart extends OperatorError {
  override readonly name: string = 'CannotStart'
  override readonly exitStatus = EXIT_CONFIGURATION
}

/** The command line is invalid; the message refers to the help. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError'
  override readonly exitStatus = EXIT_USAGE
}
