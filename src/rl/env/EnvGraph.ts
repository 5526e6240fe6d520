/**
 * Defines the graph form of an env: its step as an expression of tensors over many copies at once. With it, a backend
 * plays whole rollouts in one program, so that no step passes through JavaScript. `graphOf` returns the form of an env;
 * CartPole, Pendulum, GridWorld, KeyDoor, ApplePicker, DeepSea and MemoryChain have one, and so have Breakout and
 * SpaceInvaders without sticky actions, which need a random number in each step.
 *
 * @example
 * ```ts
 * import { CartPole, EnvGraph, Graph } from "effect-rl"
 *
 * const graph = EnvGraph.graphOf(CartPole.env)
 * const state = Graph.state("state", [1024, 4])
 * const moved = graph?.step(state, Graph.input("actions", [1024], "i32")) // { state, reward, terminated }
 * ```
 */
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { Env } from "./Env.ts"

/**
 * The dynamics of an env as functions of tensors; row n belongs to copy n. The functions draw no random numbers: all
 * randomness of an episode is in its first state, which `start` draws from the stream that the env's `reset` would get.
 */
export interface EnvGraph {
  /** The number of numbers in the state of one copy. */
  readonly stateSize: number
  /** A lower bound of the steps of an episode that is not truncated; it bounds how often a copy is reset in a rollout. */
  readonly shortest: number
  /** Writes the first state of an episode into `into`, from index `at` on. */
  readonly start: (into: Float32Array, at: number, random: Stream) => void
  /** Computes the observations [N, size] of states [N, stateSize]. */
  readonly observe: (state: Tensor) => Tensor
  /** Steps states [N, stateSize] by actions: i32 [N] if they are discrete, otherwise f32 [N, size], within the bounds. */
  readonly step: (state: Tensor, action: Tensor) => GraphTransition
}

/** The result of a step of all copies. */
export interface GraphTransition {
  readonly state: Tensor
  /** The rewards, of shape [N]. */
  readonly reward: Tensor
  /** Whether each copy reached a terminal state: bool of shape [N]. The time limit is applied by the caller. */
  readonly terminated: Tensor
}

// The key is the env object, not its id: a copy such as `{ ...env, step }` may behave differently, so it has no graph.
const graphs = new WeakMap<Env, EnvGraph | (() => EnvGraph)>()

/**
 * Records the graph form of an env, and returns the env. The form must compute what the env's own functions compute. If
 * `graph` is a function, it is called when the form is first needed, so that loading the library, which makes all
 * built-in envs, stays fast.
 */
export const withGraph = <E extends Env>(env: E, graph: EnvGraph | (() => EnvGraph) | undefined): E => {
  if (graph !== undefined) graphs.set(env, graph)
  return env
}

/** Returns the graph form of this env, the same one each time; undefined if it has none. */
export const graphOf = (env: Env): EnvGraph | undefined => {
  const graph = graphs.get(env)
  if (typeof graph !== "function") return graph
  const form = graph()
  graphs.set(env, form)
  return form
}
