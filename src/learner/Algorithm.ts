import { Effect, Schema, type Scope } from "effect"
import type { Backend, BackendError, BackendUnavailable, Program } from "../backend/Backend.ts"
import { type ConfigError, decode, type Plain } from "../config/Config.ts"
import type { BatchEnv } from "../env/BatchEnv.ts"
import type { EnvError } from "../env/EnvError.ts"
import type { Box, Space } from "../env/Space.ts"
import type { GraphError } from "../graph/GraphError.ts"
import type { Tensor } from "../graph/Tensor.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"

/** What an algorithm is to learn on: everything about the envs and the run that shapes its graphs. */
export interface Task {
  readonly observationSpace: Box
  readonly actionSpace: Space
  readonly numEnvs: number
  readonly totalSteps: number
  readonly seed: number
}

/** A learner that cannot go on: its numbers are no longer finite, or what it is to resume from does not fit. */
export class LearningError extends Schema.TaggedError<LearningError>()("LearningError", { message: Schema.String }) {}

export type LearnerError = LearningError | BackendError | EnvError
export type SetupError = LearningError | ConfigError | GraphError | BackendUnavailable | BackendError

/** Means over one update, by the names that CleanRL made common: `losses/policy_loss`, `charts/learning_rate`. */
export type Metrics = Readonly<Record<string, number>>

/** Flat weights by name. */
export type NamedTensors = Readonly<
  Record<string, { readonly shape: ReadonlyArray<number>; readonly data: Float32Array }>
>

/** Arrays by name, of any kind that a checkpoint can hold. */
export type NamedArrays = Readonly<
  Record<
    string,
    { readonly shape: ReadonlyArray<number>; readonly data: Float32Array | Float64Array | Int32Array | Uint8Array }
  >
>

/** What learning needs beside the weights, as the files of a checkpoint: `optimizer`, `replay`, … */
export type LearnerState = Readonly<Record<string, NamedArrays>>

/** A compiled way to act, for validation and for deployment. */
export interface Policy {
  /** Write numEnvs observations here … */
  readonly observations: Float32Array
  /** … and, where actions are drawn, uniform numbers here, as many for each env … */
  readonly noise: Float32Array | undefined
  /** … run this … */
  readonly program: Program
  /** … and read numEnvs actions here. */
  readonly actions: Float32Array | Int32Array
  /** Takes the learner's weights as they are now, and forgets what it remembers of episodes. */
  readonly refresh: Effect.Effect<void, BackendError>
}

export interface PolicyOptions {
  /** Draws actions as in training, where there is anything to draw; the best one is taken by default. */
  readonly sampled?: boolean
  /** What is done to an env's observations before the policy sees them: in an exported policy, their normalisation. */
  readonly see?: (observations: Tensor) => Tensor
  /** What is remembered is handed in and out, instead of being kept: for who has no place to keep it. */
  readonly memoryOutside?: boolean
}

/** Where a run stands when an iteration starts. */
export interface Position {
  /** Iterations done. */
  readonly iteration: number
  /** Env steps done. */
  readonly step: number
}

/**
 * An algorithm set up for a task: its compiled programs and their state, as hooks that the trainer calls. It alternates
 * `rollout` and `update`, and knows nothing else about how anything is learnt.
 */
export interface Learner {
  /** Program name → device, for the log. */
  readonly devices: Readonly<Record<string, string>>
  /** Acts in the envs, keeps what was seen, and says how many env steps it took, over all envs. */
  readonly rollout: (envs: BatchEnv, position: Position) => Effect.Effect<number, LearnerError>
  /**
   * What a rollout plays, where that isn't simply some steps: an episode of every env (what one goes on to play until the
   * last has ended doesn't count), or nothing, because it learns from `data`.
   */
  readonly plays?: "one episode each" | "nothing"
  /** What it learns from beside the envs: a run can only go on with the same. */
  readonly data?: NamedArrays
  /** Learns from what is kept. */
  readonly update: (position: Position) => Effect.Effect<void, LearnerError>
  /** Means over the updates since the last call. */
  readonly metrics: () => Metrics
  /** Brings the target network up to date, whenever so many more env steps were taken. */
  readonly target?: { readonly everySteps: number; readonly update: Effect.Effect<void, BackendError> }
  /** How to act in a validation. A trainer that is to validate can't do without. */
  readonly policy?: (
    numEnvs: number,
    options?: PolicyOptions,
  ) => Effect.Effect<Policy, GraphError | BackendUnavailable | BackendError, Scope.Scope>
  /**
   * The policy for one observation as an ONNX model: `observations` in, `actions` out; with a memory also `memory` (zeros
   * at an episode's start) in and `nextMemory` out.
   */
  readonly exportPolicy?: (
    see?: (observations: Tensor) => Tensor,
  ) => Effect.Effect<Uint8Array, GraphError | BackendError>
  /** What the policy is made of, where that is nothing but dense layers. */
  readonly dense?: DensePolicy
  /** The policy's weights, by the names of their layers. */
  readonly weights: Effect.Effect<NamedTensors, BackendError>
  /** All else that learning needs to go on bit for bit. */
  readonly state: Effect.Effect<LearnerState, BackendError>
  readonly restore: (weights: NamedTensors, state: LearnerState) => Effect.Effect<void, LearningError | BackendError>
}

/** An algorithm as a value: a name and a config that has not been checked yet. */
export interface Algorithm {
  readonly name: string
  readonly input: Plain
  /** Of its config. */
  readonly schema: Schema.Codec<Plain, Plain>
  readonly configure: (
    input: Plain,
    options: { readonly source: string; readonly sources?: ReadonlyMap<string, string> },
  ) => Effect.Effect<ConfiguredAlgorithm, ConfigError>
}

export interface ConfiguredAlgorithm {
  readonly name: string
  /** The effective config, every default filled in. */
  readonly config: Plain
  readonly setup: (task: Task) => Effect.Effect<Learner, SetupError, Backend | Scope.Scope>
}

/**
 * Defines an algorithm: a name, a config Schema with its defaults, and how a learner is made of them.
 *
 * @example
 * ```ts
 * const config = Schema.Struct({ learningRate: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1e-3))) })
 * const { make } = Algorithm.define({ name: "mine", config, setup: (config, task) => myLearner(config, task) })
 * const algorithm = make({ learningRate: 1e-4 })
 * ```
 */
export const define = <S extends Schema.Codec<Plain, Plain>>(definition: {
  readonly name: string
  readonly config: S
  readonly setup: (config: S["Type"], task: Task) => Effect.Effect<Learner, SetupError, Backend | Scope.Scope>
}): { readonly name: string; readonly make: (input?: S["Encoded"]) => Algorithm } => ({
  name: definition.name,
  make: (input = {}) => ({
    name: definition.name,
    input,
    schema: definition.config,
    configure: (value, options) =>
      decode(definition.config, value, { ...options, prefix: ["algorithm"] }).pipe(
        Effect.map((config) => ({
          name: definition.name,
          config,
          setup: (task: Task) => definition.setup(config, task),
        })),
      ),
  }),
})
