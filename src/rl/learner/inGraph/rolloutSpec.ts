/** Describes the program that plays a whole rollout: act, step, reset and log, in one loop over the steps. */
import type { EnvGraph } from "../../env/EnvGraph.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { ParameterLayout } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec, StateSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { toEnvAction } from "../../model/actions.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Task } from "../Learner.ts"
import type { Columns } from "../Batch.ts"
import { netOf } from "../graphs.ts"

interface RolloutProgram {
  /** The name of the algorithm. */
  readonly name: string
  readonly task: Task
  readonly actor: Actor<string>
  readonly layout: ParameterLayout
  readonly steps: number
  readonly graph: EnvGraph
  /** Episodes are truncated at this many steps. */
  readonly maxSteps: number
  /** The number of first states of coming episodes that the feed `starts` has for each env. */
  readonly slots: number
  /** The columns that the rollout stores: all except `followingColumns`, which the update computes. */
  readonly columns: Columns
}

/** The columns that the update computes from the others. */
export const followingColumns = ["advantages", "targets"] as const
/** Numbers of each step that no loss reads, but from which the update computes `followingColumns`. */
export const stepColumns = ["rewards", "nextValues", "ended"] as const

/** Returns the name of the state that holds a column of the rollout. */
export const columnState = (column: string): string => `rollout.${column}`

/** The names of the states with which the next rollout continues. */
export const envStates = ["envs", "elapsed", "returns", "slots"] as const

/**
 * Describes the program `rollout`. Iteration t of its loop is step t of all envs. It does what `makeRollout` does with
 * a batch: an env whose episode ends is reset in the same step, and if the episode was truncated, `nextValues` has the
 * value of its final observation.
 *
 * The columns are states, [steps, numEnvs, ...], which the update reads where they are. The outputs are the log: the
 * length of each episode in the step in which it ended (0 in other steps), its return, and how it ended.
 */
export const rolloutSpec = (program: RolloutProgram): ProgramSpec => {
  const { name, task, actor, layout, steps, graph, maxSteps, slots, columns } = program
  const { numEnvs } = task
  const { theta, weights } = netOf(layout, "theta")
  const noiseSize = Math.max(1, actor.noiseSize)
  const noise = G.input("noise", [1, numEnvs * noiseSize])
  const starts = G.input("starts", [numEnvs * slots, graph.stateSize])
  const state = G.state("envs", [numEnvs, graph.stateSize])
  const perEnv = (key: string): Tensor => G.state(key, [numEnvs])
  const [elapsed, returns, slot] = [perEnv("elapsed"), perEnv("returns"), perEnv("slots")]

  const acting = (observations: Tensor) =>
    actor.act({
      weights,
      target: weights,
      observations,
      noise: G.reshape(noise, [numEnvs, noiseSize]),
      exploration: G.constant(0),
    })
  const observations = graph.observe(state)
  const { actions, kept } = acting(observations)
  const moved = graph.step(state, toEnvAction(task.actionSpace, actions))
  const length = G.add(elapsed, 1)
  const truncated = G.greaterEqual(length, maxSteps)
  const ended = G.or(moved.terminated, truncated)
  const total = G.add(returns, moved.reward)
  // The value of the observation after the step, before any reset: for a truncated episode, that is its final
  // observation.
  const nextValue = acting(graph.observe(moved.state)).kept["values"]

  const firstSlots = G.constant(Int32Array.from({ length: numEnvs }, (_, env) => env * slots))
  const start = G.gather(starts, G.add(firstSlots, G.cast(slot, "i32")))
  const nextSlot = G.where(G.greaterEqual(slot, slots - 1), 0, G.add(slot, 1))
  const stored: Readonly<Record<string, Tensor>> = {
    ...kept,
    observations,
    actions: G.cast(actions, "f32"),
    rewards: moved.reward,
    nextValues: G.where(moved.terminated, 0, nextValue),
    ended: G.cast(ended, "f32"),
  }
  const column = (key: string): readonly [string, StateSpec] => {
    const next = stored[key]
    return [columnState(key), { tensor: G.state(columnState(key), [steps, ...next.shape]), next, stacked: true }]
  }
  return {
    name: `${name}.rollout`,
    inputs: { noise, starts },
    state: {
      theta: { tensor: theta },
      envs: { tensor: state, next: G.where(G.expandDims(ended, 1), start, moved.state) },
      elapsed: { tensor: elapsed, next: G.where(ended, 0, length) },
      returns: { tensor: returns, next: G.where(ended, 0, total) },
      slots: { tensor: slot, next: G.where(ended, nextSlot, slot) },
      ...Object.fromEntries([...Object.keys(columns), ...stepColumns].map(column)),
    },
    outputs: {
      lengths: G.where(ended, length, 0),
      returns: total,
      terminated: moved.terminated,
      truncated,
    },
    minibatches: { rows: steps, batch: 1, count: steps, gathered: ["noise"] },
  }
}
