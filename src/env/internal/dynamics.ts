/** The result of one step of a classic env as plain numbers, in the documented order of its state and observation. */
export interface Moved {
  readonly state: ReadonlyArray<number>
  /** Rounded to float32. */
  readonly observation: ReadonlyArray<number>
  readonly reward: number
  readonly terminated: boolean
}
