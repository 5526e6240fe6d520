/**
 * Implements the replay buffer of off-policy learners: stores steps in memory, draws transitions and copies them to
 * batches.
 */
import type { Stream } from "../../../base/rng/Rng.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import {
  drawPlaces,
  gatherSequences,
  gatherTransitions,
  makeGathering,
  type Sequences,
  startsPerEnv,
  type Transitions,
} from "./gather.ts"
import type { BufferLayout } from "./BufferLayout.ts"
import {
  addStep,
  endingOf,
  filledSteps,
  isStart,
  makeRing,
  placeOf,
  readNext,
  restoreRing,
  type Ring,
  saveRing,
  storeObservations,
  terminatedFlag,
} from "./ring.ts"
import type { Filled } from "./storage.ts"

/** Makes a replay buffer: the newest `capacity` steps of N envs, in one ring buffer for each env. */
export const makeReplay = (options: BufferLayout) => {
  const ring = makeRing(options)
  const gathering = makeGathering(ring, options)
  return {
    /** Returns the number of transitions, or of sequences, that can be drawn. */
    size: (): number => startsPerEnv(ring) * ring.numEnvs,
    /** Stores the observations before the first step. */
    begin: (envs: AnyBatchEnv): void => storeObservations(ring, envs),
    /** Stores a step of all envs: the actions, and their results in `envs`. Call it after `envs.step(actions)`. */
    add: (actions: Float32Array | Int32Array, envs: AnyBatchEnv): void => addStep(ring, actions, envs),
    /**
     * The memory of the recurrent policy in each env, before the env's current observation. Callers must update it
     * before they call `begin` or `add`.
     */
    memories: ring.memories,
    draw: (random: Stream, into: Int32Array): void => drawPlaces(gathering, random, into),
    gather: (drawn: Int32Array, into: Transitions): void => gatherTransitions(gathering, drawn, into),
    gatherSequences: (drawn: Int32Array, into: Sequences): void => gatherSequences(gathering, drawn, into),
    past: pastOf(ring),
    placeOf: (env: number, back: number): number => placeOf(ring, env, back),
    /** The number of steps after the first step of a draw that the draw needs. */
    span: ring.span,
    isStart: (place: number): boolean => isStart(ring, place),
    capacity: ring.stepsPerEnv * ring.numEnvs,
    filled: (): Filled => filledSteps(ring),
    state: (): NamedArrays => saveRing(ring),
    restore: (arrays: NamedArrays): void => restoreRing(ring, arrays),
  }
}
export type Replay = ReturnType<typeof makeReplay>

/**
 * Returns the functions with which hindsight reads the stored steps; undefined if the buffer does not know their
 * episodes.
 */
const pastOf = (ring: Ring) => {
  const { episodes, stepsPerEnv } = ring
  return (
    episodes && {
      shifted: episodes.shifted,
      /** Returns how many stored steps of the same episode come before the step at a place. */
      stepsBefore: (place: number): number =>
        episodes.before(place, ((place % stepsPerEnv) - ring.head + ring.complete + stepsPerEnv) % stepsPerEnv),
      /** Returns how many stored steps of the same episode come after the step at a place. */
      stepsAfter: (place: number): number =>
        episodes.after(place, (ring.head - 1 - (place % stepsPerEnv) + stepsPerEnv) % stepsPerEnv),
      /** Copies the observation that followed a step to `into`, which has the size of one observation. */
      readNext: (place: number, into: Float32Array): void => readNext(ring, place, endingOf(ring, place), into, 0),
      isLast: (place: number): boolean => endingOf(ring, place) !== 0,
      isTerminated: (place: number): boolean => endingOf(ring, place) === terminatedFlag,
    }
  )
}
