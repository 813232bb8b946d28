/** Readable by this user only. */
export declare const FOLDER_MODE = 448;
/**
 * Replaces a file, readable by this user only. Written to a temporary file and renamed, so that no reader sees a
 * partial file and a crash loses nothing.
 */
export declare function writePrivateFile(path: string, text: string): void;
