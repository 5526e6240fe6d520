import type { Stream } from "../rng/Rng.ts"
import type { BatchEnv } from "./BatchEnv.ts"
import type { Box, Discrete, Space } from "./Space.ts"

/** The number of a discrete action, or the numbers of a continuous one. */
export type ActionOf<A extends Space> = A extends Discrete ? number : A extends Box ? ReadonlyArray<number> | Float32Array : never

export interface Transition<State> {
  readonly state: State
  readonly reward: number
  /** The env reached a terminal state. */
  readonly terminated: boolean
  /** The env cut the episode off by itself (a time limit is better given as `maxSteps`). */
  readonly truncated?: boolean
}

/**
 * An environment as a value: pure functions over a state of plain data (numbers, strings, arrays, objects), so that
 * it can be batched, checkpointed and replayed without its author doing anything for it.
 */
export interface Env<State = never, A extends Space = Space> {
  readonly id: string
  readonly observationSpace: Box
  readonly actionSpace: A
  /** Truncates at this many steps. */
  readonly maxSteps?: number
  /** The mean return at which the task counts as solved, where one is agreed on. */
  readonly rewardThreshold?: number
  readonly reset: (random: Stream) => State
  readonly observe: (state: State) => ArrayLike<number>
  readonly step: (state: State, action: ActionOf<A>, random: Stream) => Transition<State>
  /** A drawing of a state: lines of text, or one SVG document. */
  readonly renderText?: (state: State) => string
  readonly renderSvg?: (state: State) => string
  /** Many of it stepped together, where that can be done faster than one by one. */
  readonly batch?: (numEnvs: number) => BatchEnv
}
