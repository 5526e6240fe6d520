/** Validates an agent: `validate` during a training, `playAll` at a checkpoint. */
import { Effect } from "effect"
import { countFailures, type RolloutFailure } from "../episode/rollouts/Outcome.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import * as Evaluate from "../evaluate/Evaluate.ts"
import { eventsOf } from "../evaluate/events.ts"
import { usageOf } from "../episode/Rollout.ts"
import type { LmError } from "../lm/LmError.ts"
import type { RunEvent } from "../../run/record/RunEvent.ts"
import * as Layout from "../../run/Layout.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { outcomeOf, type ValidationOutcome } from "../../run/evaluation.ts"
import type { AgentTraining } from "./AgentTraining.ts"
import type { RuntimeState } from "./RuntimeState.ts"
import * as Spread from "./spread/client.ts"
import { validationOf } from "./validation.ts"

/**
 * The number of first episodes in which the model must answer at least once (`concurrency` if that is larger); otherwise the
 * validation fails.
 */
const leastUnanswered = 3

/**
 * Plays every task of the validation set, several at a time, with clones of the agent that cannot write its memory. Passes
 * each episode to `record`, and returns the outcome of the episodes that did not fail. Fails early if the model answers in
 * none of the first episodes, because then its server is probably down.
 */
export const playAll = Effect.fnUntraced(function* <E>(
  training: AgentTraining,
  { seen }: RuntimeState,
  record: (episode: Evaluate.EpisodeToScore) => Effect.Effect<void, E>,
) {
  const episodes: Array<ValidationOutcome["episodes"][number]> = []
  const failures: Array<RolloutFailure> = []
  let someAnswered = false
  const errors = new Map<number, LmError>()
  const evaluation = validationOf(training, seen, errors)
  if (evaluation === undefined) return { ...outcomeOf(episodes), failed: 0 }
  const atMost = Math.min(evaluation.tasks.size, Math.max(leastUnanswered, evaluation.concurrency))
  const receive = (episode: Evaluate.EpisodeToScore, unanswered: LmError | null): Effect.Effect<void, E | LmError> => {
    const { totalScore, steps, ending, error } = episode
    const { terminated, truncated } = ending
    if (error === null) episodes.push({ return: totalScore, length: steps.length, terminated, truncated })
    else failures.push(error)
    if (unanswered === null) someAnswered = true
    // Episodes arrive in the order of the tasks, so the result does not depend on which one ended first.
    else if (!someAnswered && failures.length >= atMost) return Effect.fail(unanswered)
    return record(episode)
  }
  const spread = yield* Spread.spreadOf(training)
  yield* spread === undefined
    ? Evaluate.each(evaluation, (episode) => receive(episode, errors.get(episode.index) ?? null))
    : Spread.validation(spread, training, seen, receive)
  return {
    ...outcomeOf(episodes),
    failed: failures.length,
    ...(failures.length === 0 ? {} : { failures: countFailures(failures) }),
  }
})

/**
 * Validates the agent: plays the validation tasks, emits their steps, and adds the outcome to the state. The score is the
 * mean of the episodes' total scores, so long episodes do not count more than short ones. Failed episodes are left out.
 */
export const validate = Effect.fn("effect-rl.validate")(function* (training: AgentTraining, state: RuntimeState) {
  const { settings, agent, validation } = training
  if (validation === null) return
  const { files, recording } = yield* CurrentRun
  const { seen, unfinished } = state
  unfinished.usage = state.usage
  unfinished.doing = "validation"
  const outcome = yield* playAll(
    training,
    state,
    Effect.fnUntraced(function* (episode: Evaluate.EpisodeToScore) {
      yield* recording.emit(
        eventsOf(episode, { seenEpisodes: seen, agent, verbose: settings.runtime.verboseScoreLogging }),
      )
      state.addUsage(usageOf(episode.rollouts))
      if (!settings.output.saveRollouts) return
      for (const rollout of episode.rollouts) yield* files.append(Layout.rollouts(seen), Rollouts.line(rollout))
    }),
  )
  // Uninterruptible, so that the validation is counted either completely or not at all.
  yield* Effect.uninterruptible(
    Effect.suspend(() => {
      state.addValidation(outcome)
      unfinished.doing = null
      const ended: RunEvent = { _tag: "ValidationEnded", step: seen, seenEpisodes: seen, ...outcome }
      const allFailed: RunEvent = {
        _tag: "Warning",
        message: `validation after ${seen} episodes: all ${outcome.failed} failed`,
      }
      return recording.emit([outcome.episodes.length === 0 ? allFailed : ended])
    }),
  )
})
