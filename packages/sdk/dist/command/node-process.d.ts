/** Exit statuses, from 64 on those of sysexits.h. systemd must not restart after 77: `RestartPreventExitStatus=77`. */
export declare const EXIT: {
    readonly failed: 1;
    readonly usage: 64;
    readonly stoppedForGood: 77;
    readonly wrongSettings: 78;
};
/** `$XDG_CONFIG_HOME/keyway`, by default `~/.config/keyway`; `%APPDATA%\keyway` on Windows. */
export declare function configFolder(env?: NodeJS.ProcessEnv): string;
/** The default name of this machine's key. */
export declare function machineName(): string;
/** Turns text into a valid key name: without control characters, and not too long. Empty if nothing else remains. */
export declare function keyName(text: string): string;
