/**
 * Describes the failed episodes of a step, and decides whether there are too many. A failed episode only loses its sample;
 * the run is evicted if more fail than its setting `max_failures` allows.
 */
import { Effect } from "effect"
import type { Rollout } from "../../agents/episode/Rollout.ts"
import type { RolloutOutcome } from "../../agents/episode/rollouts/Outcome.ts"
import { isReward, expectedReward } from "../../agents/task/Feedback.ts"
import type { TaskSet } from "../../agents/task/TaskSet.ts"
import { type FailedEpisode, type Failures, summaryOf } from "../records/reports.ts"

/** Returns the name of a task for messages. A task that cannot be opened is named by its number. */
const namedTask = (tasks: TaskSet, task: number) =>
  Effect.match(tasks.at(task), {
    onSuccess: ({ id, type }) => ({ envId: id, envType: type }),
    onFailure: () => ({ envId: String(task), envType: "task" }),
  })

/** Returns what is wrong with the reward of a rollout, from which advantages are computed; undefined if it is usable. */
export const rewardProblem = ({ totalReward, meta: { envId, envType } }: Rollout): string | undefined =>
  isReward(totalReward)
    ? undefined
    : `${envType} "${envId}": the rewards of its episode add up to ${totalReward}; expected ${expectedReward(totalReward)}`

/** Describes why the episode of a request failed; undefined if it succeeded. */
export const failureOf = Effect.fnUntraced(function* ({ request, failure }: RolloutOutcome, tasks: TaskSet) {
  if (failure === null) return undefined
  const { id, task } = request
  return { id, task, ...(yield* namedTask(tasks, task)), ...failure } satisfies FailedEpisode
})

/** Describes why a rollout gives no samples. */
export const failedRollout = (
  { id, meta: { envId, envType } }: Rollout,
  task: number,
  error: string,
  message: string,
): FailedEpisode => ({ id, task, envId, envType, error, message })

/** Tells whether too many episodes failed. `maxFailures` is a number of episodes or, below 1, a share of the played ones. */
export const isTooMany = ({ failed, played }: Failures, maxFailures: number): boolean =>
  failed.length > (maxFailures < 1 ? maxFailures * played : maxFailures)

/** Returns the reason of an eviction: the failures, the allowed number, and the setting that allows more. */
export const tooMany = (what: string, failures: Failures, maxFailures: number): string =>
  `${summaryOf(what, failures)}; max_failures (${maxFailures}) allows ${
    maxFailures < 1 ? `${maxFailures * 100} % of a step's episodes` : `${maxFailures} in a step`
  }`

/** Fails if too many episodes of a step have failed. */
export const refuseFailures = (
  what: string,
  failures: Failures,
  {
    maxFailures,
    isOver,
    hasSamples,
  }: { readonly maxFailures: number; readonly isOver: boolean; readonly hasSamples: boolean },
) => {
  // A `maxFailures` that is a share can be checked only when all episodes of the step are over.
  const isCounted = isOver || maxFailures === 0 || maxFailures >= 1
  return isCounted && failures.failed.length > 0 && (isTooMany(failures, maxFailures) || (isOver && !hasSamples))
    ? Effect.fail({ message: tooMany(what, failures, maxFailures) })
    : Effect.void
}
