import { Schema } from "effect"
import { fraction, naturalInt, nonNegative, positive, positiveInt, withDefault } from "../../config/fields.ts"
import { sizeOf } from "../../env/Space.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { Task } from "../Algorithm.ts"
import { actionColumn, type Batch, f32 } from "../Batch.ts"
import type { Net } from "../descent.ts"

/** The settings that all replay learners share: how they collect transitions and when they learn from them. */
export const replayFields = {
  /** The discount factor of future rewards. */
  gamma: withDefault(fraction, 0.99),
  /** The number of transitions that the replay buffer holds. */
  bufferSize: withDefault(positiveInt, 1_000_000),
  /** The number of transitions that an update learns from. */
  batchSize: withDefault(positiveInt, 256),
  /** The number of env steps before the first update; their actions are random. */
  learningStarts: withDefault(naturalInt, 1000),
  /** The number of env steps between two updates, over all envs; it is rounded up to whole steps of all envs. */
  trainEvery: withDefault(positiveInt, 1),
  /** The number of gradient steps in each update. */
  gradientSteps: withDefault(positiveInt, 1),
  /** The number of rewards in a transition before its target continues with the value. */
  nsteps: withDefault(positiveInt, 1),
  /** The global norm that gradients are scaled down to; 0 does not limit them. */
  maxGradNorm: withDefault(nonNegative, 0),
}

/** Prioritised replay (Schaul et al. 2015, arXiv:1511.05952). */
export const Prioritised = Schema.Struct({
  /** The exponent of the priorities: 0 draws uniformly, 1 in proportion to the error. */
  alpha: withDefault(fraction, 0.6),
  /**
   * The exponent of the importance weights at the start; it rises to 1, a full correction of the bias, at the end of
   * the run.
   */
  beta: withDefault(fraction, 0.4),
  /** The constant that is added to every error. */
  epsilon: withDefault(positive, 1e-6),
})

/** The settings that the learner itself reads; the losses of an algorithm read others. */
export interface ReplayConfig {
  readonly gamma: number
  readonly bufferSize: number
  readonly batchSize: number
  readonly learningStarts: number
  readonly trainEvery: number
  readonly gradientSteps: number
  readonly nsteps: number
  readonly noiseRepeat?: number
  readonly prioritised?: typeof Prioritised.Type | null
}

/** The columns of a batch of transitions. A program is fed only those that its update reads. */
export const replayColumns = ({ observationSpace, actionSpace }: Task, noiseSize: number) => ({
  observations: f32(sizeOf(observationSpace)),
  /** The actions that the env took. */
  actions: actionColumn(actionSpace),
  /** The discounted sum of the transition's rewards. */
  rewards: f32(),
  nextObservations: f32(sizeOf(observationSpace)),
  /** What the value of the next observation counts: γⁿ, or 0 where the episode terminated. */
  discounts: f32(),
  /** The importance weight of the transition, where transitions are drawn by priority. */
  importance: f32(),
  /** Uniform random numbers in [0, 1). */
  noise: f32(noiseSize),
})
export type ReplayColumns = ReturnType<typeof replayColumns>

/**
 * Describes an off-policy algorithm in the parts that differ between algorithms: its networks, how it acts, and what it
 * computes from a batch of transitions. `replayLearner` makes a learner of it.
 *
 * `Name` are the names of the networks beside the actor, `Target` those of networks that have a target network, and
 * `Scalar` those of numbers that an update reads, such as learning rates.
 */
export interface ReplayDefinition<Name extends string, Target extends Name | "actor", Scalar extends string> {
  readonly name: string
  readonly config: ReplayConfig
  readonly actor: Actor
  /** The amount of exploration after a number of env steps, which `actor.act` reads: the ε of ε-greedy. */
  readonly exploration?: (step: number) => number
  /** The networks that learn without acting: the critics. */
  readonly networks: Readonly<Record<Name, Declarations>>
  readonly targets: ReadonlyArray<Target>
  /** Copies networks to their target networks after this many env steps, 0 never; without it, `update` moves them. */
  readonly copyTargetsEvery?: number
  readonly scalars: Readonly<Record<Scalar, number>>
  /** How many uniform random numbers an update needs for each transition. */
  readonly noiseSize: number
  readonly update: (at: Learning<Name, Target, Scalar>) => Update
}

/** A value for the actor and for each other network. */
export type PerNetwork<Name extends string, A> = Readonly<Record<Name | "actor", A>>

/** A network in an update, with the name of the program state that holds its weights. */
export interface NamedNet extends Net {
  readonly name: string
}

/** What an update learns from: a batch of transitions, and the networks as they are before it. */
export interface Learning<Name extends string, Target extends Name | "actor", Scalar extends string> {
  readonly batch: Batch<ReplayColumns>
  readonly networks: PerNetwork<Name, NamedNet>
  readonly targets: Pick<PerNetwork<Name, NamedNet>, Target>
  readonly scalars: Readonly<Record<Scalar, Tensor>>
}

/** Program states by name, each with its next value. */
export type NextStates = Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>

/** What an update computes. */
export interface Update {
  /** The next weights of networks and target networks, and the next states of optimisers. */
  readonly states: NextStates
  readonly metrics: Readonly<Record<string, Tensor>>
  /** The error of each transition, from which prioritised replay computes its next priority. */
  readonly errors?: Tensor
}
