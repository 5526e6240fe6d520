/** Defines the data sets from which algorithms learn without playing: demonstrations and transitions. */

/** Steps of an expert, from which `Bc` learns: one row per step. */
export interface Demonstrations {
  readonly rows: number
  /** The observations, of shape [rows, size], where `size` is the number of elements of an observation. */
  readonly observations: Float32Array
  /** The actions: discrete ones of shape [rows], or continuous ones of shape [rows, numbers per action]. */
  readonly actions: Int32Array | Float32Array
  /** The return of each episode; a step without a reward (`fromJson` allows such steps) counts as 0. */
  readonly returns: ReadonlyArray<number>
}

/** The steps of episodes, one row per step; the rows of an episode follow each other. */
export interface Transitions extends Demonstrations {
  /** The reward of each step. */
  readonly rewards: Float32Array
  /** The number of steps of each episode. */
  readonly lengths: Int32Array
  /** For each episode, 1 if it terminated and 0 if it was truncated; the value of a terminal state is 0. */
  readonly terminated: Uint8Array
  /** The observation after the last step of each episode, of shape [episodes, size]. */
  readonly finalObservations: Float32Array
}
