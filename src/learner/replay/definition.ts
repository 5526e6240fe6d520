import { Schema } from "effect"
import { fraction, naturalInt, nonNegative, positive, positiveInt, withDefault } from "../../config/fields.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { DensePolicy } from "../../model/DensePolicy.ts"
import type { Net } from "../descent.ts"
import type { Declarations, Weights } from "../../model/trunk.ts"

/**
 * What DQN, SAC and TD3 share: act, keep what was seen in a replay memory, and learn from batches drawn from it. They
 * differ in how they act and in what they learn from a batch.
 */
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

export interface ReplayDefinition {
  readonly name: string
  readonly config: ReplayConfig
  /** What acts. */
  readonly actor: Declarations
  readonly dense?: DensePolicy | undefined
  /** What only learns beside it. */
  readonly critic?: Declarations
  /** Which of the two have a second, slower copy. */
  readonly targets: ReadonlyArray<"actor" | "critic">
  /** Uniform numbers that acting takes an env, and that learning takes a row. */
  readonly noise: { readonly act: number; readonly learn: number }
  readonly act: (at: ActingOnce) => Tensor
  readonly greedy: (weights: Weights, observations: Tensor) => Tensor
  readonly learn: (batch: ReplayBatch) => Learnt
  /** First values of states that `learn` keeps, where they aren't zero. */
  readonly initial?: Readonly<Record<string, Float32Array>>
  /** The scalar that `act` explores by, after so many env steps. */
  readonly exploration?: (step: number) => number
  /** How often the copies are made equal to their originals, in env steps; without it `learn` moves them. */
  readonly targetEvery?: number
  /** Scalars that an update is fed, after so many env steps: learning rates. */
  readonly scalars: (step: number) => Readonly<Record<string, number>>
}

export interface ActingOnce {
  readonly weights: Weights
  readonly observations: Tensor
  readonly noise: Tensor
  readonly exploration: Tensor
}

/** A drawn batch as `learn` sees it. */
export interface ReplayBatch {
  readonly actor: Net
  readonly critic: Net
  readonly targets: { readonly actor: Net; readonly critic: Net }
  readonly rows: number
  readonly observations: Tensor
  /** As the env took them. */
  readonly actions: Tensor
  readonly rewards: Tensor
  readonly nextObservations: Tensor
  /** What the next observation's value counts. */
  readonly discounts: Tensor
  /** How much each row counts, where rows are drawn by priority. */
  readonly importance: Tensor | undefined
  readonly noise: Tensor
  readonly scalar: (name: string) => Tensor
}

export interface Learnt {
  /** `actor`, `critic`, what optimisers keep, and the targets where `learn` moves them. */
  readonly states: Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>
  readonly metrics: Readonly<Record<string, Tensor>>
  /** How wrong each row was: its next priority. */
  readonly errors?: Tensor
}

/** The names of the networks' states in an update program. */
export const targetOf = (net: "actor" | "critic"): string => `target.${net}`
