/**
 * Says which episodes of a step failed, and whether so many may fail. A failed episode costs its own sample; the run is
 * evicted only if more fail than its setting `max_failures` allows.
 *
 * @example
 * ```ts
 * isTooMany({ failed: [failed], played: 8 }, 0.75) // false: one of eight may fail
 * ```
 */
import { Effect } from "effect"
import type { Rollout } from "../../agents/episode/Rollout.ts"
import type { RolloutOutcome } from "../../agents/episode/rollouts/Outcome.ts"
import { isReward, expectedReward } from "../../agents/task/Feedback.ts"
import type { TaskSet } from "../../agents/task/TaskSet.ts"
import { type FailedEpisode, type Failures, summaryOf } from "../records/reports.ts"

/** Names a task in messages. A task that cannot be opened has only its number. */
const namedTask = (tasks: TaskSet, task: number) =>
  Effect.match(tasks.at(task), {
    onSuccess: ({ id, type }) => ({ envId: id, envType: type }),
    onFailure: () => ({ envId: String(task), envType: "task" }),
  })

/** Returns what is wrong with the rewards of a rollout, of which advantages are computed; or undefined. */
export const rewardProblem = ({ totalReward, meta: { envId, envType } }: Rollout): string | undefined =>
  isReward(totalReward)
    ? undefined
    : `${envType} "${envId}": the rewards of its episode add up to ${totalReward}; expected ${expectedReward(totalReward)}`

/** Describes why the episode of a request has failed; undefined if it has not. */
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

/** Tells whether more episodes failed than may: `maxFailures` is a number from 1 on, or below 1 a share of those played. */
export const isTooMany = ({ failed, played }: Failures, maxFailures: number): boolean =>
  failed.length > (maxFailures < 1 ? maxFailures * played : maxFailures)

/** Returns the reason of an eviction: what failed, what was allowed, and which setting allows more. */
export const tooMany = (what: string, failures: Failures, maxFailures: number): string =>
  `${summaryOf(what, failures)}; max_failures (${maxFailures}) allows ${
    maxFailures < 1 ? `${maxFailures * 100} % of a step's episodes` : `${maxFailures} in a step`
  }`
