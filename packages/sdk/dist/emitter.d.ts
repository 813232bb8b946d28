/** A listener of one event. */
export type Listener<Event> = (event: Event) => void;
/** The smallest typed emitter: no wildcard, no ordering promises beyond "in the order of registration". */
export declare class Emitter<Events extends object> {
    #private;
    on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this;
    off<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this;
    once<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this;
}
