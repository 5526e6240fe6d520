/**
 * Declares the interface between learners and the trainer (`src/rl/train`). A `Learner` is an algorithm that was set up
 * for a `Task`; the trainer calls it to play and to learn. `Algorithm.ts` defines algorithms.
 */
import type { Effect, Scope } from "effect"
import * as Schema from "effect/Schema"
import type { BackendError, BackendUnavailable, Program } from "../../tensor/backend/Backend.ts"
import type { ConfigError } from "../../base/config/Config.ts"
import type { EnvError } from "../../base/EnvError.ts"
import type { AnyBatchEnv, EpisodeLog } from "../env/BatchEnv.ts"
import type { Env } from "../env/Env.ts"
import type { EnvGraph } from "../env/EnvGraph.ts"
import type { Goals } from "../env/GoalEnv.ts"
import type { ActionSpace, RowSpace } from "../env/Space.ts"
import type { GraphError } from "../../tensor/graph/GraphError.ts"
import type { NamedArrays, NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { DensePolicy } from "../model/trunk.ts"
import type { Steps } from "./drive.ts"

/** The problem that an algorithm is set up for: the facts about envs and run that its programs are compiled for. */
export interface Task {
  /** The space of the rows that a batch of envs gives: observations, with action masks after them if there are any. */
  readonly observationSpace: RowSpace
  readonly actionSpace: ActionSpace
  readonly numEnvs: number
  /** The number of env steps of the whole run, over all envs. */
  readonly totalSteps: number
  readonly seed: number
  /** The names of the agents of a game, whose rows follow each other in a batch; undefined if the env has one agent. */
  readonly agents?: ReadonlyArray<string> | undefined
  /** The graph form of the env, if it has one, and the number of steps at which its episodes are truncated. */
  readonly graph?: EnvGraph | undefined
  /** The functions of the env's goals, if it has goals. */
  readonly goals?: Goals | undefined
  /** The env itself, whose steps are the model of learners that plan. It is not stepped in training. */
  readonly model?: Env | undefined
  readonly maxSteps?: number | undefined
  /** Whether the learner also records the total loss of each update, as `train/loss`. */
  readonly logLoss?: boolean
}

/**
 * Reports that a training cannot go on: it diverged (a metric is not finite), a checkpoint or data do not fit, or a callback
 * failed. The message is one line that says which.
 */
export class LearningError extends Schema.TaggedError<LearningError>()("LearningError", {
  message: Schema.String,
  /** `callback` if a callback failed, or asked for something that cannot be done. A resumed run may get past that. */
  reason: Schema.optionalKey(Schema.Literal("callback")),
}) {}

export type LearnerError = LearningError | BackendError | EnvError
export type SetupError = LearningError | ConfigError | GraphError | BackendUnavailable | BackendError

/** Averages over updates by metric name. The names are those of the library CleanRL, such as `losses/policy_loss`. */
export type Metrics = Readonly<Record<string, number>>

/** The state of a learner except weights: arrays by name, for each checkpoint file (`optimizer`, `replay` …). */
export type LearnerState = Readonly<Record<string, NamedArrays>>

/**
 * The policy as a graph, for exports. Its inputs are `observations` of one env and, if it has a memory, `memory`; its
 * outputs are `actions`, as the env takes them, and `nextMemory`.
 */
export interface PolicyGraph {
  readonly spec: ProgramSpec
  /** The numbers of the graph's states, by name: the weights. */
  readonly states: Readonly<Record<string, Float32Array>>
}

/** A compiled policy, for validation. The caller fills `observations` and `noise`, runs `program`, and reads `actions`. */
export interface Policy {
  /** The input: the observations of numEnvs envs. */
  readonly observations: Float32Array
  /** The input of uniform random numbers, equally many for each env; undefined if the policy draws no actions. */
  readonly noise: Float32Array | undefined
  /** The program that computes `actions` from `observations` and `noise`. */
  readonly program: Program
  /** The output: the actions of numEnvs envs. */
  readonly actions: Float32Array | Int32Array
  /**
   * Reads and writes the policy's copy of the weights, as one vector. Without it, opponents cannot play past versions
   * of the policy.
   */
  readonly weights?: {
    readonly read: Effect.Effect<Float32Array, BackendError>
    readonly write: (weights: Float32Array) => Effect.Effect<void, BackendError>
  }
  /**
   * Chooses the actions in place of `program`, if the policy plans: it searches from the states of the envs, the first of
   * which has the row `at` in `actions`.
   */
  readonly search?: (envs: AnyBatchEnv, at: number) => Steps<void>
  /** Copies the learner's current weights into the policy, and sets the memory of a recurrent policy to zeros. */
  readonly refresh: Effect.Effect<void, BackendError>
}

export interface PolicyOptions {
  /** Draws actions as in training, if the algorithm draws actions. By default the policy takes the best action. */
  readonly sampled?: boolean
  /** Makes the memory an input and an output of the program; the caller passes each output to the next step. */
  readonly externalMemory?: boolean
}

/** The progress of a run when an iteration starts. */
export interface Position {
  /** The number of iterations completed so far. */
  readonly iteration: number
  /** The number of env steps taken so far, over all envs. */
  readonly step: number
  /**
   * Returns the learning rate to use instead of the scheduled one, which callbacks can change. If absent, the scheduled
   * rate applies.
   */
  readonly steer?: (scheduled: number) => number
}

/**
 * Returns the learning rate of an update: the scheduled one, or the one that callbacks of the training have set
 * instead.
 */
export const steered = ({ steer }: Position, scheduled: number): number => steer?.(scheduled) ?? scheduled

/**
 * Tells whether a multiple of `every` is above `last` and at most `step`; never if `every` is 0. `step % every === 0`
 * would miss a multiple that lies between two values of a counter that grows by more than 1.
 */
export const crossed = (last: number, step: number, every: number): boolean =>
  every > 0 && Math.floor(step / every) > Math.floor(last / every)

/**
 * The ways in which a learner plays and learns that decide which settings a training may have; `src/rl/train/misfit.ts`
 * checks them.
 */
export interface Capabilities {
  /**
   * The episodes that a rollout plays. `steps`: a number of steps in each env. `one episode each`: it plays until every env
   * has ended an episode, and only the first episode of each env is recorded. `nothing`: it plays no env, and the learner
   * learns from `data`.
   */
  readonly plays: "steps" | "one episode each" | "nothing"
  /**
   * The number of steps that each env takes in a rollout, if it is always the same. Separate policies for the agents of a game
   * need such learners, whose rollouts take these steps together.
   */
  readonly rolloutSteps: number | undefined
  /**
   * Whether the learner plans with the env's own states. Then the envs must run in this thread, and give observations
   * unchanged.
   */
  readonly plans: boolean
  /**
   * Whether the learner imitates an expert: it needs observations as the env gives them to the expert, and no rewards.
   * So neither can be normalised.
   */
  readonly imitates: boolean
  /** Whether the learner can only play the policy of a checkpoint, since the data or the expert that it learns from is missing. */
  readonly onlyPlays: boolean
  /** Whether the learner minimises one total loss, which it records as `train/loss` if the task asks for it. */
  readonly totalLoss: boolean
  /** The number of slices of each minibatch, whose gradients as many ranks can compute. */
  readonly slices: number
}

const usual: Capabilities = {
  plays: "steps",
  rolloutSteps: undefined,
  plans: false,
  imitates: false,
  onlyPlays: false,
  totalLoss: false,
  slices: 1,
}

/**
 * Returns all capabilities of a learner, with the usual ones where it names none.
 *
 * @example
 * ```ts
 * capabilitiesOf({ capabilities: { plans: true } }).plays // "steps"
 * ```
 */
export const capabilitiesOf = ({ capabilities }: Pick<Learner, "capabilities">): Capabilities => ({
  ...usual,
  ...capabilities,
})

/**
 * An algorithm set up for a task: its compiled programs and their state, behind functions. The trainer calls `rollout`
 * and `update` in turn, and knows nothing else about how the algorithm learns.
 */
export interface Learner {
  /** The device that runs each compiled program, by the program's name, for the log. */
  readonly devices: Readonly<Record<string, string>>
  /** Acts in the envs, records the experience, and returns the number of env steps over all envs. */
  readonly rollout: (envs: AnyBatchEnv, position: Position) => Effect.Effect<number, LearnerError>
  /** The abilities of this learner that differ from the usual ones, which `Capabilities` lists with their defaults. */
  readonly capabilities?: Partial<Capabilities>
  /** The learners of separate policies, if the learner consists of them. Each one exports its own policy. */
  readonly separate?: ReadonlyArray<{
    readonly name: string
    /** The name of the algorithm that learns the policy. */
    readonly algorithm: string
    /** The agents that the policy plays. */
    readonly agents: ReadonlyArray<string>
    readonly learner: Learner
  }>
  /**
   * The episodes that ended in the last rollout, if the learner plays its envs itself, in the graph. It ignores the batch
   * that `rollout` gets, and saves the states of its envs as a part of its own state.
   */
  readonly episodes?: EpisodeLog
  /** Data that the learner learns from besides rollouts: demonstrations. A run can be resumed only with equal data. */
  readonly data?: NamedArrays
  /** Learns from the recorded experience. */
  readonly update: (position: Position) => Effect.Effect<void, LearnerError>
  /** Returns the averages over the updates since the last call. */
  readonly metrics: () => Metrics
  /** Copies the online network into the target network; the trainer calls `update` once every `everySteps` env steps. */
  readonly target?: { readonly everySteps: number; readonly update: Effect.Effect<void, BackendError> }
  /** Compiles the policy for a number of envs. A run with validations needs this function. */
  readonly policy?: (
    numEnvs: number,
    options?: PolicyOptions,
  ) => Effect.Effect<Policy, GraphError | BackendUnavailable | BackendError, Scope.Scope>
  /**
   * Returns the policy as an ONNX model for any number of rows, with the input `observations` and the output `actions`.
   * A policy with a memory also has the input `memory` (zeros at the start of an episode) and the output `nextMemory`.
   * Further outputs are those of the actor besides actions (`Greedy.outputs`). `preprocess` prepares observations;
   * exports whose `preprocess` differs only in constants share most of the work. `about` is a text that describes the
   * policy. It goes into the model's metadata, with the programs that `Policy.load` runs, for one observation: `main`,
   * and if the algorithm draws actions, `sampled`, whose input `noise` is uniform random numbers.
   */
  readonly exportPolicy?: (
    preprocess?: (observations: Tensor) => Tensor,
    about?: string,
  ) => Effect.Effect<Uint8Array, GraphError | BackendError>
  /** Returns the policy for one observation as a graph with the current weights. */
  readonly policyGraph?: Effect.Effect<PolicyGraph, GraphError | BackendError>
  /** The layers of the policy, if it consists of dense layers alone. */
  readonly dense?: DensePolicy
  readonly weights: Effect.Effect<NamedTensors, BackendError>
  /** Everything except the weights that a resumed run needs to continue bit for bit. */
  readonly state: Effect.Effect<LearnerState, BackendError>
  /**
   * Begins with these weights instead of random ones: target networks copy them, and optimisers begin anew. A training that
   * sets `start.from` needs this function.
   */
  readonly start?: (weights: NamedTensors) => Effect.Effect<void, LearningError | BackendError>
  /** Restores the learner from the weights and the state of a checkpoint. */
  readonly restore: (weights: NamedTensors, state: LearnerState) => Effect.Effect<void, LearningError | BackendError>
}
