/** Divides the rows of a batch of games among separate policies. */

/** The rows of a batch that belong to one policy. */
export interface Seat {
  /** The name of the policy. */
  readonly name: string
  readonly rows: Int32Array
}

/** A policy and the agents that it plays. */
export interface Played {
  readonly name: string
  readonly agents: ReadonlyArray<string>
}

/**
 * Returns the rows of each policy in a batch of `numEnvs` rows, where each game has a row for each of its agents.
 *
 * @example
 * ```ts
 * seatsOf(["wolf", "sheep"], [{ name: "wolf", agents: ["wolf"] }], 6)[0].rows // 0, 2, 4
 * ```
 */
export const seatsOf = (
  agents: ReadonlyArray<string>,
  policies: ReadonlyArray<Played>,
  numEnvs: number,
): ReadonlyArray<Seat> => {
  const numbers = Array.from({ length: numEnvs }, (_, row) => row)
  return policies.map(({ name, agents: own }) => ({
    name,
    rows: Int32Array.from(numbers.filter((row) => own.includes(agents[row % agents.length]))),
  }))
}
