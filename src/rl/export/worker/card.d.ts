/**
 * Declares `card.js`, which `workerFiles.ts` generates for each policy, so that `policy.js` and `worker.js` can be
 * type-checked here.
 */

/** Describes a policy to people and programs. `GET /` of a worker answers with it. */
export interface Card {
  readonly name: string
  readonly algorithm: string
  readonly environment: string
  /** The step of the training at which the policy had these weights. */
  readonly step: number
  readonly observation: {
    readonly shape: ReadonlyArray<number>
    /** A JSON Schema of what `act` reads. */
    readonly schema: Readonly<Record<string, unknown>>
    /** The parts of an observation, in the order of their numbers; null if it is just an array of real numbers. */
    readonly parts: ReadonlyArray<Part> | null
  }
  readonly action:
    | { readonly kind: "discrete"; readonly choices: number }
    /** Several choices at once: the number of options of each. */
    | { readonly kind: "choices"; readonly sizes: ReadonlyArray<number> }
    /** Zeros and ones. */
    | { readonly kind: "switches"; readonly count: number }
    | {
        readonly kind: "continuous"
        readonly shape: ReadonlyArray<number>
        /** The bounds of each element; null where there is none. */
        readonly low: ReadonlyArray<number | null>
        readonly high: ReadonlyArray<number | null>
      }
  /** How many numbers the policy remembers between two steps of an episode; 0 for a policy without a memory. */
  readonly memory: number
  /** How many choices an action mask has; 0 for a policy without masks. */
  readonly mask: number
}

/** A part of an observation that has no parts itself. */
export interface Part {
  /** The names or indices on the way to it. */
  readonly path: ReadonlyArray<string | number>
  /** Its shape; empty if it is one number. */
  readonly shape: ReadonlyArray<number>
  /** The number of options of each of its numbers; null for real numbers. */
  readonly options: ReadonlyArray<number> | null
}

/** Tells where an array is in the memory of `policy.wasm`. The address is in bytes, the length in elements. */
export interface Place {
  readonly address: number
  readonly length: number
}

export declare const card: Card
export declare const places: {
  readonly observations: Place
  readonly actions: Place
  readonly memory: Place | null
  readonly nextMemory: Place | null
}
/** The numbers by which observations are normalised: (x − mean) · factor, clipped to −clip … clip. */
export declare const normalisation: {
  readonly mean: ReadonlyArray<number>
  readonly factor: ReadonlyArray<number>
  readonly clip: number
  /** The columns that stay as they are. */
  readonly kept: ReadonlyArray<number>
} | null
