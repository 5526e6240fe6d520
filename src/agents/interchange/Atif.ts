/**
 * Converts between rollouts and trajectories in the Agent Trajectory Interchange Format (ATIF), which Harbor and other tools for
 * agents read and write. A rollout that is written and read again is the same rollout. `effect export RUN --to atif` writes the
 * episodes of a run.
 *
 * @example
 * ```ts
 * const [trajectory] = Atif.trajectoriesOf(rollouts, { version: "1.0.0" })
 * yield* fs.writeFileString("trajectory.json", JSON.stringify(trajectory))
 *
 * // A trajectory of any program:
 * const read = yield* Atif.trajectoryOf(JSON.parse(yield* fs.readFileString("trajectory.json")), "trajectory.json")
 * const again = yield* Atif.rolloutsOf(read, { id: "hello-world", type: "terminal", reward: 1 })
 * ```
 */
export { rolloutsOf, trajectoryOf } from "./atif/readAtif.ts"
export type { Trajectory } from "./atif/Trajectory.ts"
export { trajectoriesOf } from "./atif/writeAtif.ts"
