/** Describes, as plain values, how on-policy algorithms collect experience. */
import type { Effect, Scope } from "effect"
import type { Backend, BackendError, Program, TensorData } from "../../../tensor/backend/Backend.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { sizeOf } from "../../env/Space.ts"
import type { ParameterLayout, NamedArrays } from "../../../tensor/graph/Parameters.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { LearnerState, LearningError, Metrics, SetupError, Task } from "../Learner.ts"
import { actionColumn, type Columns, f32 } from "../Batch.ts"
import type { Steps } from "../drive.ts"
import type { SavedState } from "../learnerState.ts"
import { type BaseColumns, type Kept, kept, type Rollout, type StepHooks } from "./RolloutData.ts"

/**
 * Describes how an algorithm collects experience: how it acts, for how many steps, which numbers (columns) it stores
 * for each step (row), and how rewards become returns. `experience` makes one without features; `withTarget`,
 * `withBonus`, `withDemonstrations` and `withAuxiliary` each add a feature. `rolloutLearner` describes a learner with
 * this experience.
 *
 * The type `C` lists the columns, so that a loss that reads a column which is not stored does not compile.
 */
export interface Experience<C extends Columns> {
  /** The name of the algorithm, for messages and the names of programs. */
  readonly name: string
  readonly task: Task
  readonly actor: Actor<string>
  /** The number of steps that each env takes between two updates. */
  readonly steps: number
  /** The number of consecutive steps for which actions are drawn with the same noise. */
  readonly noiseRepeat: number
  /** Whether each rollout begins with new noise, as state-dependent exploration does. */
  readonly freshNoise: boolean
  readonly columns: C
  /**
   * How rewards become returns: a function that fills the columns `advantages` and `targets` of a rollout, or the
   * parameters of generalised advantage estimation.
   */
  readonly returns: GeneralisedAdvantages | ((rollout: Rollout<C>) => void)
  /** All parameters that are learned: those of the actor and of the features. */
  readonly parameters: Declarations
  /** The learning rates of some parameters, as factors of the common learning rate, by the parameters' names. */
  readonly learningRateShares: Readonly<Record<string, number>>
  /** Weights that are drawn once and never learned. */
  readonly fixed: Declarations
  /**
   * The number of consecutive steps through which gradients flow back through the actor's memory (an LSTM); 0 is the whole
   * rollout. It must be 0 without a memory.
   */
  readonly sequence: number
  /** Data that the learner learns from besides rollouts: demonstrations. A run can be resumed only with equal data. */
  readonly data: NamedArrays
  /** Whether the learner imitates an expert, and so needs observations as the env gives them, and no rewards. */
  readonly imitates: boolean
  readonly hasTarget: boolean
  /** The schedule of the scalar by which the actor explores, such as ε; undefined if the actor reads no such scalar. */
  readonly exploration: Schedule | undefined
  /** Additions such as a bonus. The learner starts them and calls their hooks in this order. */
  readonly features: ReadonlyArray<Feature<C>>
}

export interface ExperienceOptions<Names extends string> extends Pick<
  Experience<BaseColumns>,
  "name" | "task" | "steps" | "returns"
> {
  readonly actor: Actor<Names>
  /** The number of consecutive steps for which actions are drawn with the same noise; 1 by default. */
  readonly noiseRepeat?: number
  /** Whether each rollout begins with new noise; false by default. */
  readonly freshNoise?: boolean
  /** The number of steps through which gradients flow back through the actor's memory; 0, the whole rollout, by default. */
  readonly sequence?: number
  readonly exploration?: Schedule
}

/** The columns of a rollout whose actor computes these numbers (`Names`, which must include `values`) for each row. */
export type ColumnsOf<Names extends string> = BaseColumns & Readonly<Record<Names, Kept>>

/**
 * Makes an experience in which each of the task's envs takes `steps` steps.
 *
 * @example
 * ```ts
 * const returns = { gamma: 0.99, lambda: 1 }
 * experience({ name: "a2c", task, actor: network, steps: 5, returns }).columns.logProbs // the network keeps them
 * ```
 */
export function experience<Names extends string>(options: ExperienceOptions<Names>): Experience<ColumnsOf<Names>>
export function experience(options: ExperienceOptions<string>): object {
  const { task, actor } = options
  const columns: BaseColumns = {
    observations: f32(sizeOf(task.observationSpace)),
    actions: actionColumn(task.actionSpace),
    values: kept(),
    ...Object.fromEntries(actor.keeps.map((key) => [key, kept()])),
    advantages: f32(),
    targets: f32(),
  }
  return {
    exploration: undefined,
    ...options,
    noiseRepeat: options.noiseRepeat ?? 1,
    freshNoise: options.freshNoise ?? false,
    columns,
    parameters: actor.parameters,
    learningRateShares: {},
    fixed: {},
    sequence: options.sequence ?? 0,
    data: {},
    imitates: false,
    hasTarget: false,
    features: [],
  } satisfies Experience<BaseColumns>
}

/** Generalised advantage estimation, which the learner carries out: `rl/returns/gae.ts` has the formula. */
export interface GeneralisedAdvantages {
  /** The discount factor. */
  readonly gamma: number
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. */
  readonly lambda: number
}

/** Starts an addition to a learner, such as a bonus, and returns its hooks: functions that the learner calls. */
export type Feature<C extends Columns> = (
  learner: FeatureInput<C>,
) => Effect.Effect<FeatureHooks, SetupError, Backend | Scope.Scope>

/** The parts of a learner that a feature may use. */
export interface FeatureInput<C extends Columns> extends Pick<Experience<C>, "name" | "task" | "columns"> {
  /** All parameters that the learner learns, in the order in which they lie in its vector of weights. */
  readonly parameters: ParameterLayout
  /** The weights that are drawn once and never learned. */
  readonly fixed: ParameterLayout
  readonly rollout: Rollout<C>
  /** The program that chooses the actions of the rollout. */
  readonly act: Program
  /** The programs of the update, in the order in which they run. */
  readonly updates: ReadonlyArray<Program>
}

/** A feature's data, and the hooks that the learner calls, in this order; it calls `StepHooks` during each rollout. */
export interface FeatureHooks extends StepHooks {
  /** A program of the feature, into which the learner copies the weights after each update. */
  readonly program?: Program
  /** Columns whose arrays the feature fills itself. The learner copies them to the update as it does the rollout's. */
  readonly columns?: Readonly<Record<string, Float32Array>>
  /** Runs once, with the initial weights. */
  readonly initialise?: (weights: Float32Array) => Effect.Effect<void, BackendError>
  /** Runs before the first rollout of a run that was not resumed. */
  readonly beforeFirstRollout?: (envs: AnyBatchEnv) => Steps<void>
  readonly afterRollout?: () => void
  /** Runs before rewards become advantages and targets. It may change rewards, and yields programs to run. */
  readonly beforeReturns?: (iteration: number) => Steps<void>
  /** Runs when `advantages` and `targets` are filled; it may change them. */
  readonly afterReturns?: () => void
  /** Runs before the update. `feeds` are the inputs of its first program; the hook fills those that are not columns. */
  readonly beforeUpdate?: (iteration: number, feeds: Readonly<Record<string, TensorData>>) => void
  readonly metrics?: () => Metrics
  /** Copies the online network into the target network once every `everySteps` env steps. */
  readonly target?: {
    readonly everySteps: number
    readonly update: (weights: Float32Array) => Effect.Effect<void, BackendError>
  }
  readonly state?: Effect.Effect<LearnerState, BackendError>
  readonly restore?: (files: SavedState) => Effect.Effect<void, LearningError | BackendError>
}
