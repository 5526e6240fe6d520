/**
 * Defines filters of rollouts, e.g. by reward, to choose those to train on: plain functions for `Array.filter` and
 * `Stream.filter`.
 *
 * @example
 * ```ts
 * const good = Rollouts.read("rollouts.jsonl").pipe(
 *   Stream.filter(RolloutFilters.all(RolloutFilters.rewardAtLeast(0.5), RolloutFilters.notTruncated)),
 *   Stream.filter(RolloutFilters.distinct()),
 * )
 * ```
 */
import { Sha256 } from "../../../base/text/sha256.ts"
import { type AgentStep, parseFailureOf, type Rollout, type TruncationReason } from "../Rollout.ts"
import { utf8 } from "../../../base/text/utf8.ts"

export type RolloutFilter = (rollout: Rollout) => boolean

/** Makes a filter that keeps rollouts which pass all of the filters. */
export const all =
  (...filters: ReadonlyArray<RolloutFilter>): RolloutFilter =>
  (rollout) =>
    filters.every((filter) => filter(rollout))

/** Makes a filter that keeps rollouts which pass at least one of the filters. */
export const any =
  (...filters: ReadonlyArray<RolloutFilter>): RolloutFilter =>
  (rollout) =>
    filters.some((filter) => filter(rollout))

/** Makes a filter that keeps rollouts which do not pass the filter. */
export const not =
  (filter: RolloutFilter): RolloutFilter =>
  (rollout) =>
    !filter(rollout)

/** Keeps rollouts with at least this total reward. */
export const rewardAtLeast =
  (least: number): RolloutFilter =>
  ({ totalReward }) =>
    totalReward >= least

/** Keeps rollouts with at most this total reward. */
export const rewardAtMost =
  (most: number): RolloutFilter =>
  ({ totalReward }) =>
    totalReward <= most

/** Keeps rollouts that were truncated; if a reason is given, only those truncated for it. */
export const truncated =
  (reason?: TruncationReason): RolloutFilter =>
  ({ ending }) =>
    ending.truncated && (reason === undefined || ending.truncationReason === reason)

/** Keeps rollouts that were not truncated. */
export const notTruncated: RolloutFilter = ({ ending }) => !ending.truncated

const countCalls = ({ steps }: Pick<Rollout, "steps">, counts: (step: AgentStep) => boolean): number =>
  steps.reduce((sum, step) => sum + (step._tag === "AgentStep" && counts(step) ? 1 : 0), 0)

/** Counts the model's answers that were meant for the env but could not be parsed as an action. */
export const parseFailures = (rollout: Pick<Rollout, "steps">): number =>
  countCalls(rollout, (step) => parseFailureOf(step) !== null)

/** Keeps rollouts with at most this many answers that could not be parsed as an action. */
export const parseFailuresAtMost =
  (most: number): RolloutFilter =>
  (rollout) =>
    parseFailures(rollout) <= most

/** Counts the completions that were cut off at the model's limit of tokens, whether or not the agent used them. */
export const incompleteCompletions = (rollout: Pick<Rollout, "steps">): number =>
  countCalls(rollout, ({ call }) => call.completion.finishReason === "length")

/** Keeps rollouts with at most this many completions that were cut off. */
export const incompleteCompletionsAtMost =
  (most: number): RolloutFilter =>
  (rollout) =>
    incompleteCompletions(rollout) <= most

/** Returns a text of all observations and completions, equal for rollouts that differ only in ids and seeds. */
export const transcript = ({ meta, steps }: Pick<Rollout, "meta" | "steps">): string =>
  JSON.stringify([
    meta.envType,
    meta.envId,
    meta.player,
    ...steps.map((step) => {
      if (step._tag === "EnvironmentStep") return [step.observation, step.action, step.nextObservation]
      const { content, toolCalls } = step.call.completion
      return [content, toolCalls.map(({ name, arguments: args }) => [name, args])]
    }),
  ])

/**
 * Keeps the first of several rollouts with equal keys. The key is the transcript by default. The filter remembers 64
 * characters of each rollout, so use a new filter for each list.
 */
export const distinct = (keyOf: (rollout: Rollout) => string = transcript): RolloutFilter => {
  const seen = new Set<string>()
  return (rollout) => {
    const hash = new Sha256()
    hash.update(utf8.encode(keyOf(rollout)))
    const before = seen.size
    return seen.add(hash.hex()).size > before
  }
}

/** Keeps the rollouts of groups whose total rewards differ. Equal rewards do not show which actions are better. */
export const groupsThatDiffer = (rollouts: ReadonlyArray<Rollout>): ReadonlyArray<Rollout> => {
  const rewards = new Map<string | null, Set<number>>()
  for (const { meta, totalReward } of rollouts) {
    const group = rewards.get(meta.groupId) ?? new Set()
    rewards.set(meta.groupId, group.add(totalReward))
  }
  return rollouts.filter(({ meta }) => meta.groupId !== null && (rewards.get(meta.groupId)?.size ?? 0) > 1)
}
