/** Describes, as plain values, what off-policy algorithms learn from. `replayLearner` makes learners from them. */
import * as Record from "effect/Record"
import { sizeOf } from "../../env/Space.ts"
import { asPytorch } from "../../../tensor/graph/initialisers.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { Task } from "../Learner.ts"
import { actionColumn, type Columns, f32, i32 } from "../Batch.ts"
import type { Prioritised, ReplayConfig } from "./fields.ts"

/**
 * Describes what a replay learner learns from: how it acts, its networks, and how it draws transitions from its replay
 * buffer. `withTargets`, `withPriorities` and `withSequences` add to it; `replayLearner` makes a learner from an experience
 * and an update.
 *
 * `Name` are the names of the networks besides the actor, `Target` those of the networks that have a target network, and `C`
 * the columns of a batch.
 */
export interface ReplayExperience<
  Name extends string,
  Target extends Name | "actor",
  C extends Columns = ReplayColumns,
> extends ExperienceOptions<Name> {
  readonly targets: ReadonlyArray<Target>
  /**
   * The number of env steps between two copies to the target networks; undefined if each update changes the target
   * networks itself.
   */
  readonly copyTargetsEvery?: number | undefined
  /** The settings of prioritised replay; null draws all transitions with the same probability. */
  readonly priorities: Prioritised | null
  /** The sequences that are drawn for an actor with a memory; undefined draws transitions. */
  readonly sequences?: SequenceLengths
  /** Declares the columns of a batch. `noiseSize` is the number of random numbers that an update needs for each row. */
  readonly columns: (noiseSize: number) => C
}

/** The lengths of the sequences that a network with a memory learns from. */
export interface SequenceLengths {
  /** The number of steps whose actions are learned from. */
  readonly length: number
  /** The number of earlier steps that only warm up the network's memory. */
  readonly burnIn: number
}

export interface ExperienceOptions<Name extends string> {
  /** The name of the algorithm. */
  readonly name: string
  readonly task: Task
  readonly config: ReplayConfig
  readonly actor: Actor
  /** The schedule of the exploration that `actor.act` reads, such as the ε of ε-greedy. */
  readonly exploration?: Schedule
  /**
   * The standard deviation of the noise on the random actions before `learningStarts`, as a function of the run's
   * progress; no noise by default.
   */
  readonly warmUpNoise?: Schedule
  /** Whether each rollout begins with new noise; false by default. */
  readonly freshNoise?: boolean
  /** Whether the actor also acts before `learningStarts`, instead of random actions; false by default. */
  readonly actsAtWarmup?: boolean
  /** The networks besides the actor that learn but do not act, such as the critics. */
  readonly networks: Readonly<Record<Name, Declarations>>
}

/**
 * Makes an experience that keeps the newest `bufferSize` transitions and draws each with the same probability.
 *
 * @example
 * ```ts
 * const networks = { critic: critics.parameters }
 * const plain = replayExperience({ name: "sac", task, config: replayConfig, actor, networks })
 * withTargets(plain, ["critic"]).targets // ["critic"]
 * ```
 */
export const replayExperience = <Name extends string>(
  options: ExperienceOptions<Name>,
): ReplayExperience<Name, never> => ({
  ...(options.config.orthogonal ? options : startedAsPytorch(options)),
  targets: [],
  priorities: null,
  columns: (noiseSize) => replayColumns(options.task, noiseSize),
})

/** Replaces the first weights of all networks by those that PyTorch draws. */
const startedAsPytorch = <Name extends string>(options: ExperienceOptions<Name>): ExperienceOptions<Name> => ({
  ...options,
  actor: { ...options.actor, parameters: asPytorch(options.actor.parameters) },
  networks: Record.map(options.networks, asPytorch),
})

/**
 * Gives each of the networks named in `targets` a target network, which starts with the same weights. With `copyEvery`,
 * the trainer copies the weights again each time after this many env steps (0: never). Without `copyEvery`, the
 * algorithm's update must change the target networks, as `polyak` does.
 */
export const withTargets = <Name extends string, Target extends Name | "actor">(
  experience: ReplayExperience<Name, never>,
  targets: ReadonlyArray<Target>,
  options: { readonly copyEvery?: number } = {},
): ReplayExperience<Name, Target> => ({ ...experience, targets, copyTargetsEvery: options.copyEvery })

/**
 * Makes the learner draw transitions with larger errors more often (Schaul et al. 2015); null draws all with the same
 * probability.
 */
export const withPriorities = <Name extends string, Target extends Name | "actor">(
  experience: ReplayExperience<Name, Target>,
  priorities: Prioritised | null,
): ReplayExperience<Name, Target> => ({ ...experience, priorities })

/**
 * Makes the learner of an actor with a memory draw sequences in place of transitions (Kapturowski et al. 2019, R2D2). The
 * buffer stores the memory before every step where a sequence can begin; half a sequence lies between two of them. A sequence
 * passes the ends of episodes, where the memory becomes empty. `batchSize` is then the number of sequences in a batch.
 */
export const withSequences = <Name extends string, Target extends Name | "actor">(
  experience: ReplayExperience<Name, Target>,
  sequences: SequenceLengths,
): ReplayExperience<Name, Target, SequenceColumns> => {
  const { task, config, actor } = experience
  const lengths = { ...sequences, nsteps: config.nsteps, memorySize: actor.memorySize }
  return { ...experience, sequences, columns: (noiseSize) => sequenceColumns(task, lengths, noiseSize) }
}

/** Declares the columns of a batch of transitions. The update's program has inputs only for those that it reads. */
export const replayColumns = ({ observationSpace, actionSpace }: Task, noiseSize: number) => ({
  observations: f32(sizeOf(observationSpace)),
  /** The actions that the env got. */
  actions: actionColumn(actionSpace),
  /** The discounted sum of the transition's rewards. */
  rewards: f32(),
  /** The observations after the transitions. Where the episode terminated, it can be the first one of the next episode. */
  nextObservations: f32(sizeOf(observationSpace)),
  /** The factor of the next observation's value: γᵏ after k steps (fewer than n if truncated), 0 where it terminated. */
  discounts: f32(),
  /** The importance weight of the transition; 1 for all without prioritised replay. */
  importance: f32(),
  /** Uniform random numbers in [0, 1) for the update, such as for drawing actions. */
  noise: f32(noiseSize),
})
export type ReplayColumns = ReturnType<typeof replayColumns>

/**
 * Declares the columns of a batch of sequences; all numbers of a sequence are one row. The observations are those that the
 * memory reads one after another: `burnIn`, then `length` whose actions are learned from, then the `nsteps` after them.
 */
export const sequenceColumns = (
  { observationSpace, actionSpace }: Pick<Task, "observationSpace" | "actionSpace">,
  { length, burnIn, nsteps, memorySize }: SequenceLengths & { readonly nsteps: number; readonly memorySize: number },
  noiseSize: number,
) => {
  const observations = burnIn + length + nsteps
  const action = actionColumn(actionSpace)
  return {
    observations: f32(observations, sizeOf(observationSpace)),
    /** 1 for the first observation of an episode, before which the memory is emptied, else 0. */
    fresh: f32(observations),
    /** The memory before the first observation, as it was when the step was taken. */
    memory: f32(memorySize),
    /** The actions that were taken at the learned observations. */
    actions: { ...action, shape: [length, ...action.shape] },
    /** The discounted sums of the rewards of the transitions that begin there. */
    rewards: f32(length),
    /** The factors of the values of the observations after the transitions, as in `replayColumns`. */
    discounts: f32(length),
    /** The observations after the transitions, counted from the first learned observation. */
    next: i32(length),
    /** 0 for the final observation of a truncated episode, at which no action was taken, else 1. */
    valid: f32(length),
    /** The importance weight of the sequence; 1 for all without prioritised replay. */
    importance: f32(),
    /** Uniform random numbers in [0, 1) for the update. */
    noise: f32(noiseSize),
  }
}
export type SequenceColumns = ReturnType<typeof sequenceColumns>
