/** The mode of a folder that only this user can read. */
export declare const FOLDER_MODE = 448;
/**
 * Replaces a file that only this user can read. Writes to a temporary file and renames it, so that no reader sees a
 * partial file and a crash loses nothing.
 */
export declare function writePrivateFile(path: string, text: string): void;
