/**
 * Decides which tasks a step plays after its own, because episodes failed or groups teach nothing (dynamic sampling), and
 * which groups are trained on. A group are the episodes of one task; it teaches something if two episodes of the same player
 * have different rewards.
 */
import { stream } from "../../base/rng/Rng.ts"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import type { FailedEpisode } from "../records/reports.ts"
import type { Usable } from "./advantages.ts"

/** Returns the name of the group of an episode. */
const nameOf = ({ rollout: { id, meta } }: Usable): string => meta.groupId ?? id

const differ = (group: ReadonlyArray<Usable>): boolean => {
  const rewards = Map.groupBy(group, ({ rollout }) => rollout.meta.player)
  return [...rewards.values()].some((all) =>
    all.some(({ rollout }) => rollout.totalReward !== all[0].rollout.totalReward),
  )
}

/** Returns the number of groups whose rewards differ. */
const differingGroups = (usable: ReadonlyArray<Usable>): number =>
  [...Map.groupBy(usable, nameOf).values()].filter(differ).length

/**
 * Returns the episodes of the groups that are trained on, in the order in which they were played: those whose rewards
 * differ and, if these are fewer than `wanted`, as many others. Also returns the number of groups that are left out.
 */
export const chosenGroups = (usable: ReadonlyArray<Usable>, wanted: number) => {
  const groups = Map.groupBy(usable, nameOf)
  const [even, differing] = [false, true].map((isWanted) =>
    [...groups].flatMap(([name, group]) => (differ(group) === isWanted ? [name] : [])),
  )
  const chosen = new Set([...differing, ...even].slice(0, wanted))
  return { usable: usable.filter((one) => chosen.has(nameOf(one))), leftOut: groups.size - chosen.size }
}

/** The state of a step that is being made. */
export interface StepState {
  readonly step: number
  /** The number of groups that the step is to have. */
  readonly wanted: number
  readonly usable: Array<Usable>
  readonly failed: Array<FailedEpisode>
  /** The tasks that were played. */
  readonly tasks: Set<number>
  /** The number of episodes that were played. */
  episodes: number
  /** The number of groups that were played or, in supervised steps, of answers. */
  groups: number
  /** The number of times that tasks were played. */
  rounds: number
}

/**
 * Returns the tasks that a step plays next: other ones if all episodes have failed so far, or more groups if too few groups
 * have rewards that differ. None if the step is over. `size` is the number of tasks of the data set.
 */
export const nextTasks = (
  { seed, batch, supervised }: Pick<OrchestratorConfig, "seed" | "batch" | "supervised">,
  size: number,
  state: StepState,
): ReadonlyArray<number> => {
  const { step, wanted, usable, rounds } = state
  if (usable.length === 0) return rounds > replacements ? [] : otherTasks(seed, size, state)
  const left = batch.replacedGroups - (state.groups - wanted)
  if (step < supervised.steps || left <= 0) return []
  return moreTasks(seed, size, state, Math.max(0, Math.min(left, wanted - differingGroups(usable))))
}

/** The number of times that other tasks replace the tasks of a step, if all of its episodes failed. */
const replacements = 3

/** Returns tasks that did not fail in this step, in a random order; fewer than wanted if the data set has fewer. */
const otherTasks = (seed: number, size: number, { step, wanted, failed, rounds }: StepState): ReadonlyArray<number> => {
  if (failed.length === 0) return []
  const without = new Set(failed.map(({ task }) => task))
  const order = stream(seed, "replacement", step, rounds - 1).permutation(new Int32Array(size))
  return [...order].filter((task) => !without.has(task)).slice(0, wanted)
}

/**
 * Returns the tasks of `count` more groups of a step, which depend only on the arguments: tasks of the data set in a random
 * order, first those that the step has not played.
 */
const moreTasks = (
  seed: number,
  size: number,
  { step, rounds, tasks }: StepState,
  count: number,
): ReadonlyArray<number> => {
  if (count === 0) return []
  const order = [...stream(seed, "more-groups", step, rounds).permutation(new Int32Array(size))]
  const all = [...order.filter((task) => !tasks.has(task)), ...order.filter((task) => tasks.has(task))]
  return Array.from({ length: count }, (_, at) => all[at % size])
}
