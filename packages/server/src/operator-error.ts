/** Exit statuses of the command; 0 is done. Named and numbered as in sysexits.h where that has a name. */
export const EXIT_FAILED = 1
/** `EX_USAGE`: the command line was not understood. */
export const EXIT_USAGE = 64
/** `EX_CONFIG`: a setting is wrong, or the operator must remove what prevents the start. */
export const EXIT_CONFIGURATION = 78

/** What an operator can mend. The message is all that they are shown: one sentence with what to do. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError'
  /** What the command ends with. */
  readonly exitStatus: number = EXIT_FAILED
}

/** The settings ask for what this program cannot do, and trying again does not help. */
export class CannotStart extends OperatorError {
  override readonly name: string = 'CannotStart'
  override readonly exitStatus = EXIT_CONFIGURATION
}

/** The command line was not understood; the message says where to read what would be. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError'
  override readonly exitStatus = EXIT_USAGE
}
