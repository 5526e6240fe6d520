/** What an observation or an action can be. */
export type Space = Box | Discrete

/** Real numbers within bounds, one pair of bounds an element. */
export interface Box {
  readonly _tag: "Box"
  readonly shape: ReadonlyArray<number>
  readonly low: ReadonlyArray<number>
  readonly high: ReadonlyArray<number>
}

/** One of 0 … n − 1. */
export interface Discrete {
  readonly _tag: "Discrete"
  readonly n: number
}
