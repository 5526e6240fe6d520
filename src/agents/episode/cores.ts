/** Returns the number of CPU cores, which is the default number of simultaneous episodes; 1 if it is unknown. */
export const cores = (): number => globalThis.navigator?.hardwareConcurrency ?? 1
