import { Effect, Schema, type Scope } from "effect"
import type { Backend, BackendError, BackendUnavailable, Program } from "../backend/Backend.ts"
import { type ConfigError, decode, type Plain } from "../config/Config.ts"
import type { BatchEnv } from "../env/BatchEnv.ts"
import type { EnvError } from "../env/EnvError.ts"
import type { Box, Space } from "../env/Space.ts"
import type { GraphError } from "../graph/GraphError.ts"
import type { Tensor } from "../graph/Tensor.ts"
import type { DensePolicy } from "../model/DensePolicy.ts"

/** The problem that an algorithm is set up for: everything about the envs and the run that shapes its graphs. */
export interface Task {
  readonly observationSpace: Box
  readonly actionSpace: Space
  readonly numEnvs: number
  readonly totalSteps: number
  readonly seed: number
}

/** A learner cannot continue: its numbers are no longer finite, or a checkpoint does not fit it. */
export class LearningError extends Schema.TaggedError<LearningError>()("LearningError", { message: Schema.String }) {}

export type LearnerError = LearningError | BackendError | EnvError
export type SetupError = LearningError | ConfigError | GraphError | BackendUnavailable | BackendError

/** Averages over one update, by the names that CleanRL made common: `losses/policy_loss`, `charts/learning_rate`. */
export type Metrics = Readonly<Record<string, number>>

/** Weights by the names of their parameters. */
export type NamedTensors = Readonly<
  Record<string, { readonly shape: ReadonlyArray<number>; readonly data: Float32Array }>
>

/** Arrays by name, of every kind that a checkpoint can hold. */
export type NamedArrays = Readonly<
  Record<
    string,
    { readonly shape: ReadonlyArray<number>; readonly data: Float32Array | Float64Array | Int32Array | Uint8Array }
  >
>

/** Everything but the weights that learning continues from, as files of a checkpoint: `optimizer`, `replay`, … */
export type LearnerState = Readonly<Record<string, NamedArrays>>

/** A compiled policy, for validation. */
export interface Policy {
  /** Write numEnvs observations here … */
  readonly observations: Float32Array
  /** … and, where actions are drawn, uniform numbers here, as many for each env … */
  readonly noise: Float32Array | undefined
  /** … run this … */
  readonly program: Program
  /** … and read numEnvs actions here. */
  readonly actions: Float32Array | Int32Array
  /** Copies the learner's current weights, and empties the memory. */
  readonly refresh: Effect.Effect<void, BackendError>
}

export interface PolicyOptions {
  /** Draws actions as in training, where the algorithm draws any; the default takes the best action. */
  readonly sampled?: boolean
  /** Is applied to observations before the network: an exported policy normalises them itself. */
  readonly preprocess?: (observations: Tensor) => Tensor
  /** Makes the memory an input and an output of the program, for callers that carry it themselves. */
  readonly externalMemory?: boolean
}

/** How far a run has come when an iteration starts. */
export interface Position {
  /** The number of iterations so far. */
  readonly iteration: number
  /** The number of env steps so far. */
  readonly step: number
}

/**
 * An algorithm set up for a task: its compiled programs and their state, behind hooks. The trainer calls `rollout` and
 * `update` by turns, and knows nothing else about how anything is learned.
 */
export interface Learner {
  /** The device of each program, for the log. */
  readonly devices: Readonly<Record<string, string>>
  /** Acts in the envs, records the experience, and returns the number of env steps over all envs. */
  readonly rollout: (envs: BatchEnv, position: Position) => Effect.Effect<number, LearnerError>
  /**
   * What a rollout plays, unless it is a number of steps: one episode of every env, after which the steps of an env do not
   * count until the last episode has ended; or nothing, because the learner learns from `data`.
   */
  readonly plays?: "one episode each" | "nothing"
  /** Data other than the envs that it learns from. A run can be resumed only with the same data. */
  readonly data?: NamedArrays
  /** Learns from the recorded experience. */
  readonly update: (position: Position) => Effect.Effect<void, LearnerError>
  /** Averages over the updates since the last call. */
  readonly metrics: () => Metrics
  /** Copies the online network into the target network; the trainer calls it every so many env steps. */
  readonly target?: { readonly everySteps: number; readonly update: Effect.Effect<void, BackendError> }
  /** Compiles the policy for a number of envs. A run with validations needs it. */
  readonly policy?: (
    numEnvs: number,
    options?: PolicyOptions,
  ) => Effect.Effect<Policy, GraphError | BackendUnavailable | BackendError, Scope.Scope>
  /**
   * The policy for one observation as an ONNX model: `observations` in, `actions` out. A policy with a memory also has the
   * input `memory` (zeros at the start of an episode) and the output `nextMemory`.
   */
  readonly exportPolicy?: (
    preprocess?: (observations: Tensor) => Tensor,
  ) => Effect.Effect<Uint8Array, GraphError | BackendError>
  /** The layers of the policy, if it consists of dense layers alone. */
  readonly dense?: DensePolicy
  readonly weights: Effect.Effect<NamedTensors, BackendError>
  /** Everything but the weights that a resumed run needs to continue bit for bit. */
  readonly state: Effect.Effect<LearnerState, BackendError>
  readonly restore: (weights: NamedTensors, state: LearnerState) => Effect.Effect<void, LearningError | BackendError>
}

/** An algorithm as a value: its name, and a config that has not been checked yet. */
export interface Algorithm {
  readonly name: string
  readonly input: Plain
  /** The Schema of its config. */
  readonly schema: Schema.Codec<Plain, Plain>
  readonly configure: (
    input: Plain,
    options: { readonly source: string; readonly sources?: ReadonlyMap<string, string> },
  ) => Effect.Effect<ConfiguredAlgorithm, ConfigError>
}

export interface ConfiguredAlgorithm {
  readonly name: string
  /** The config with every default filled in. */
  readonly config: Plain
  readonly setup: (task: Task) => Effect.Effect<Learner, SetupError, Backend | Scope.Scope>
}

/**
 * Defines an algorithm: its name, the Schema of its config with the defaults, and a function that makes the learner.
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
