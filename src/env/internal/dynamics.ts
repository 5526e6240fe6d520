/** What one step of a classic env gives: numbers only, in the order of its documented state and observation. */
export interface Moved {
  readonly state: ReadonlyArray<number>
  /** Rounded to float32, as it is handed out. */
  readonly observation: ReadonlyArray<number>
  readonly reward: number
  readonly terminated: boolean
}
