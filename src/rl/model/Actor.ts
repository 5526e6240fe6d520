/**
 * Declares the type `Actor`: the interface through which a learner chooses actions with a network. Each algorithm makes
 * its actor.
 */
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Recall } from "./memory.ts"
import type { Declarations, DensePolicy, Weights } from "./trunk.ts"

/**
 * An actor builds the graphs from observations to actions: `act` with exploration, and `greedy` without. Learners compile
 * `act` into the program that plays rollouts, and `greedy` (or `act`, to sample) into those for validation and export.
 * Each row is an env's observation.
 *
 * `Kept` names the numbers that `act` computes from each observation and the update needs later, such as `values`.
 */
export interface Actor<Kept extends string = never> {
  readonly parameters: Declarations
  /** The layers of the greedy policy, if it consists of dense layers only; such a policy can be exported as C++. */
  readonly dense?: DensePolicy | undefined
  /** The number of uniform random numbers in [0, 1) that `act` needs for each env. */
  readonly noiseSize: number
  /**
   * How many of these random numbers, counted from the end, all envs share; `act` reads them only from the first row.
   * @default 0
   */
  readonly sharedNoiseSize?: number
  /**
   * The number of elements of each env's noise process, if the actor reads one. The learner steps the processes;
   * validations that sample actions run none. @default 0
   */
  readonly processSize?: number
  /** The number of elements of each env's memory, the state of a recurrent network; 0 if the actor has no memory. */
  readonly memorySize: number
  /** The names of the numbers that `act` returns in `kept`. A rollout stores them for the update. */
  readonly keeps: ReadonlyArray<Kept>
  /** Chooses actions as in training, with exploration, and computes the kept numbers. */
  readonly act: (at: Acting) => Acted<Kept>
  /** Chooses the action that is best by the current weights. */
  readonly greedy: (at: Observing) => Greedy
}

interface Greedy {
  readonly actions: Tensor
  readonly memory?: Tensor | undefined
  /**
   * Builds what an exported policy returns besides its actions, a row for each observation: `logits` of choices, `mean` and
   * `log_std` of real numbers, `q_values`, and the critic's `value`. Undefined if there is nothing.
   */
  readonly outputs?: (() => Readonly<Record<string, Tensor>>) | undefined
}

interface Observing {
  readonly weights: Weights
  readonly observations: Tensor
  /** The memory before the observations; undefined if the actor has no memory. */
  readonly recall?: Recall | undefined
}

interface Acting extends Observing {
  /** Uniform random numbers in [0, 1), of shape [rows, noiseSize]. */
  readonly noise: Tensor
  /** A scalar that the learner's exploration schedule sets, such as the ε of an ε-greedy actor. */
  readonly exploration: Tensor
  /** The current values of the noise processes, of shape [rows, processSize]; undefined if the actor has none. */
  readonly process?: Tensor | undefined
  /** The weights of the target network; the online weights if the learner has no target network. */
  readonly target: Weights
}

interface Acted<Kept extends string = never> {
  readonly actions: Tensor
  /** The kept numbers by name, one per row. */
  readonly kept: Readonly<Record<Kept, Tensor>>
  /** The memory after the observations; undefined if the actor has no memory. */
  readonly memory?: Tensor | undefined
}
