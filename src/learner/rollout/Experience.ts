import type { Effect, Scope } from "effect"
import type { Backend, BackendError, Program, TensorData } from "../../backend/Backend.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import { sizeOf } from "../../env/Space.ts"
import type { Layout } from "../../graph/Parameters.ts"
import type { Schedule } from "../../graph/schedules.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Declarations } from "../../model/trunk.ts"
import { gae } from "../../returns/gae.ts"
import type { LearnerState, LearningError, Metrics, SetupError, Task } from "../Algorithm.ts"
import { actionColumn, type Columns, f32 } from "../Batch.ts"
import type { Steps } from "../drive.ts"
import type { SavedState } from "../learnerState.ts"
import { type BaseColumns, type Kept, kept, type Rollout, type StepHooks } from "./Rollout.ts"

/**
 * How an algorithm collects experience: how it acts, for how many steps, which columns each row has, and how rewards become
 * returns. `experience` makes a plain one; `withMemory`, `withTarget`, `withBonus` and `withAuxiliary` each add a feature
 * to one. `rolloutLearner` then learns from it.
 *
 * `C` holds the columns, so that a loss can read only what was collected.
 */
export interface Experience<C extends Columns> {
  /** The name of the algorithm, for messages and the names of programs. */
  readonly name: string
  readonly task: Task
  readonly actor: Actor<string>
  /** The number of steps that each env takes between two updates. */
  readonly steps: number
  readonly noiseRepeat: number
  readonly columns: C
  /** Fills `advantages` and `targets` after a rollout. */
  readonly returns: (rollout: Rollout<C>) => void
  readonly parameters: Declarations
  /** The learning rates of single parameters, as shares of the common one. */
  readonly learningRateShares: Readonly<Record<string, number>>
  /** Weights that are drawn once and never learned. */
  readonly fixed: Declarations
  /** The number of steps of a sequence through which gradients flow; 0 without a memory. */
  readonly sequence: number
  readonly hasTarget: boolean
  /** The scalar by which the actor explores, such as ε. */
  readonly exploration: Schedule | undefined
  readonly features: ReadonlyArray<Feature<C>>
}

export interface ExperienceOptions<Names extends string> {
  readonly name: string
  readonly task: Task
  readonly actor: Actor<Names>
  readonly steps: number
  /** The number of steps for which actions are drawn with the same noise; 1 by default. */
  readonly noiseRepeat?: number
  readonly returns: (rollout: Rollout<BaseColumns>) => void
  readonly exploration?: Schedule
}

/** The columns of an actor that keeps these names, `values` among them. */
export type ColumnsOf<Names extends string> = BaseColumns & Readonly<Record<Names, Kept>>

/**
 * Makes an experience of T steps of N envs.
 *
 * @example
 * ```ts
 * const returns = generalisedAdvantages({ gamma: 0.99, lambda: 1 })
 * experience({ name: "a2c", task, actor: network, steps: 5, returns }).columns.logProbs // the network keeps them
 * ```
 */
export function experience<Names extends string>(options: ExperienceOptions<Names>): Experience<ColumnsOf<Names>>
export function experience(options: ExperienceOptions<string>): object {
  const { name, task, actor, steps, noiseRepeat = 1, returns, exploration } = options
  const columns: BaseColumns = {
    observations: f32(sizeOf(task.observationSpace)),
    actions: actionColumn(task.actionSpace),
    values: kept(),
    ...Object.fromEntries(actor.keeps.map((key) => [key, kept()])),
    advantages: f32(),
    targets: f32(),
  }
  return {
    name,
    task,
    actor,
    steps,
    noiseRepeat,
    columns,
    returns,
    exploration,
    parameters: actor.parameters,
    learningRateShares: {},
    fixed: {},
    sequence: 0,
    hasTarget: false,
    features: [],
  } satisfies Experience<BaseColumns>
}

/**
 * Fills a rollout's advantages by generalised advantage estimation, and its targets, advantage + value. What comes after
 * the last step counts by its value; so does the final observation of an episode that was truncated, but nothing comes
 * after one that terminated.
 *
 * @example
 * ```ts
 * experience({ name: "ppo", task, actor: network, steps: 128, returns: generalisedAdvantages({ gamma: 0.99, lambda: 0.95 }) })
 * ```
 */
export const generalisedAdvantages =
  ({ gamma, lambda }: { readonly gamma: number; readonly lambda: number }) =>
  ({ columns, last, atTruncation, ...rollout }: Rollout<BaseColumns>): void => {
    const { rewards, terminated, truncated } = rollout
    const cut = rollout.truncations() > 0 ? { truncated, truncatedValues: atTruncation.values } : {}
    const { values, advantages, targets } = columns
    gae({ rewards, values, lastValues: last.values, terminated, ...cut, gamma, lambda, out: advantages, targets })
  }

/** An addition to a learner. It is started once, and its hooks are called at fixed points of each iteration. */
export type Feature<C extends Columns> = (
  learner: FeatureInput<C>,
) => Effect.Effect<FeatureHooks, SetupError, Backend | Scope.Scope>

export interface FeatureInput<C extends Columns> {
  readonly name: string
  readonly task: Task
  readonly columns: C
  /** All parameters of the learner, in the order in which they lie in its vector of weights; and those never learned. */
  readonly parameters: Layout
  readonly fixed: Layout
  readonly rollout: Rollout<C>
  readonly act: Program
  /** The programs of the update, in order. */
  readonly updates: ReadonlyArray<Program>
}

/** The hooks in the order in which they are called. */
export interface FeatureHooks extends StepHooks {
  /** A program of the feature; the weights are copied into it after each update. */
  readonly program?: Program
  /** Columns that the feature keeps in arrays of its own. */
  readonly columns?: Readonly<Record<string, Float32Array>>
  /** When the first weights have been drawn. */
  readonly initialise?: (weights: Float32Array) => Effect.Effect<void, BackendError>
  /** Before the first rollout of a run that was not resumed. */
  readonly beforeFirstRollout?: (envs: BatchEnv) => void
  readonly afterRollout?: () => void
  readonly beforeReturns?: (iteration: number) => Steps<void>
  readonly afterReturns?: () => void
  /** Before the update; fills those inputs of its first program that are not columns of the rollout. */
  readonly beforeUpdate?: (iteration: number, feeds: Readonly<Record<string, TensorData>>) => void
  readonly metrics?: () => Metrics
  /** Copies the online network into the target network, every so many env steps. */
  readonly target?: {
    readonly everySteps: number
    readonly update: (weights: Float32Array) => Effect.Effect<void, BackendError>
  }
  readonly state?: Effect.Effect<LearnerState, BackendError>
  readonly restore?: (files: SavedState) => Effect.Effect<void, LearningError | BackendError>
}
