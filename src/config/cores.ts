/** Returns the number of CPU cores; 1 if the platform does not report it. */
export const cores = (): number => globalThis.navigator?.hardwareConcurrency ?? 1
