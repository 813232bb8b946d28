/** Readable by this user only. */
export declare const FOLDER_MODE = 448;
/**
 * Replaces a file, readable by this user only. Written beside and renamed, so that no reader sees half of it and no crash
 * loses what was there before.
 */
export declare function writePrivateFile(path: string, text: string): void;
