/**
 * Declares the types of `card.js`, so that `policy.js` and `worker.js` can be type-checked here. `workerFiles.ts`
 * generates a `card.js` for each policy.
 */

/** Describes a policy to people and programs. `GET /` of a worker answers with it. */
export interface Card {
  readonly name: string
  readonly algorithm: string
  readonly environment: string
  /** The step of the training at which the policy was saved. */
  readonly step: number
  readonly observation: {
    readonly shape: ReadonlyArray<number>
    /** A JSON Schema of the observations that `act` reads. */
    readonly schema: Readonly<Record<string, unknown>>
    /** The parts of an observation, in the order of their numbers; null if it is just an array of real numbers. */
    readonly parts: ReadonlyArray<Part> | null
  }
  readonly action:
    | { readonly kind: "discrete"; readonly choices: number }
    /** Several choices at once; `sizes` has the number of options of each. */
    | { readonly kind: "choices"; readonly sizes: ReadonlyArray<number> }
    /** Switches: a list of `count` zeros and ones. */
    | { readonly kind: "switches"; readonly count: number }
    | {
        readonly kind: "continuous"
        readonly shape: ReadonlyArray<number>
        /** The bounds of each element; null means no bound. */
        readonly low: ReadonlyArray<number | null>
        readonly high: ReadonlyArray<number | null>
      }
  /** How many numbers the policy remembers between two steps of an episode; 0 for a policy without a memory. */
  readonly memory: number
  /** How many choices an action mask has; 0 for a policy without masks. */
  readonly mask: number
}

/** A part of an observation that has no parts of its own. */
export interface Part {
  /** The names or indices that lead to the part, from the outside to the inside. */
  readonly path: ReadonlyArray<string | number>
  /** The shape of the part; empty if the part is one number. */
  readonly shape: ReadonlyArray<number>
  /** The number of options of each number of the part; null for real numbers. */
  readonly options: ReadonlyArray<number> | null
}

/** The position of an array in the memory of `policy.wasm`: its address in bytes, and its length in elements. */
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
  /** The columns that are not normalised. */
  readonly kept: ReadonlyArray<number>
} | null
