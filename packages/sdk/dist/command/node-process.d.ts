/** Exit statuses (sysexits.h). Tell a service manager not to restart after 77: `RestartPreventExitStatus=77`. */
export declare const EXIT: {
    readonly failed: 1;
    readonly usage: 64;
    readonly stoppedForGood: 77;
    readonly wrongSettings: 78;
};
/** `$XDG_CONFIG_HOME/keyway`, by default `~/.config/keyway`; `%APPDATA%\keyway` on Windows. */
export declare function configFolder(env?: NodeJS.ProcessEnv): string;
/** The name of this machine, as a key may be named. */
export declare function machineName(): string;
export declare function keyName(text: string): string;
