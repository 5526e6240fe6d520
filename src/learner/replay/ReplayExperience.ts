/** Describes, as plain values, what off-policy algorithms learn from. `replayLearner` makes learners from them. */
import { sizeOf } from "../../env/Space.ts"
import type { Schedule } from "../../graph/schedules.ts"
import type { Actor } from "../../model/Actor.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { Task } from "../Algorithm.ts"
import { actionColumn, f32 } from "../Batch.ts"
import type { Prioritised, ReplayConfig } from "./fields.ts"

/**
 * Describes what a replay learner learns from: how it acts, its networks, and how it draws transitions from its replay
 * buffer. `withTargets` and `withPriorities` add to it; `replayLearner` makes a learner from an experience and an update.
 *
 * `Name` are the names of the networks besides the actor, and `Target` those of the networks that have a target network.
 */
export interface ReplayExperience<Name extends string, Target extends Name | "actor"> extends ExperienceOptions<Name> {
  readonly targets: ReadonlyArray<Target>
  /** The number of env steps between two copies to the target networks; undefined if each update changes these. */
  readonly copyTargetsEvery?: number | undefined
  /** The settings of prioritised replay; null draws all transitions with the same probability. */
  readonly priorities: Prioritised | null
}

export interface ExperienceOptions<Name extends string> {
  /** The name of the algorithm. */
  readonly name: string
  readonly task: Task
  readonly config: ReplayConfig
  readonly actor: Actor
  /** The schedule of the exploration that `actor.act` reads, such as the ε of ε-greedy. */
  readonly exploration?: Schedule
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
): ReplayExperience<Name, never> => ({ ...options, targets: [], priorities: null })

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

/** Makes the learner draw transitions with larger errors more often (Schaul et al. 2015); null: all equally often. */
export const withPriorities = <Name extends string, Target extends Name | "actor">(
  experience: ReplayExperience<Name, Target>,
  priorities: Prioritised | null,
): ReplayExperience<Name, Target> => ({ ...experience, priorities })

/** Declares the columns of a batch of transitions. The update's program has inputs only for those that it reads. */
export const replayColumns = ({ observationSpace, actionSpace }: Task, noiseSize: number) => ({
  observations: f32(sizeOf(observationSpace)),
  /** The actions as they were given to the env. */
  actions: actionColumn(actionSpace),
  /** The discounted sum of the transition's rewards. */
  rewards: f32(),
  nextObservations: f32(sizeOf(observationSpace)),
  /** The factor of the next observation's value: γⁿ, or 0 where the episode terminated. */
  discounts: f32(),
  /** The importance weight of the transition; only an experience made by `withPriorities` has this column. */
  importance: f32(),
  /** Uniform random numbers in [0, 1) for the update, such as for drawing actions. */
  noise: f32(noiseSize),
})
export type ReplayColumns = ReturnType<typeof replayColumns>
