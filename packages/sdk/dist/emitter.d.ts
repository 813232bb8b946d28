/** A listener of one event. */
export type Listener<Event> = (event: Event) => void;
/** A minimal typed event emitter. Listeners are called in the order of registration. */
export declare class Emitter<Events extends object> {
    #private;
    on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this;
    off<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this;
    once<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this;
}
