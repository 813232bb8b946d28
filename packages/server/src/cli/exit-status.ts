/** What a command ends with; 0 is done. Named and numbered as in sysexits.h where that has a word. */
export const EXIT_FAILED = 1
/** `EX_USAGE`: the command line was not understood. */
export const EXIT_USAGE = 64
/** `EX_CONFIG`: a setting is wrong, or what stands in the way of a start is the operator's to mend. */
export const EXIT_CONFIGURATION = 78
