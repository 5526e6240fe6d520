/** Makes the events from which evaluations and trainings of agents write logs and scores. These are pure functions. */
import type { RolloutEnding } from "../episode/Rollout.ts"
import type { EpisodeEnded, RunEvent, StepScored } from "../../run/record/RunEvent.ts"
import type { EpisodeToScore, TimedStep } from "./PlayedEpisode.ts"

/** The type and the model of the agent that took a step. */
interface ActingAgent {
  readonly type: string
  readonly model: string | null
}

/**
 * Makes the event of one scored step. The observation, the action and further details are included only if `verbose` is set.
 */
export const stepScored = (
  step: TimedStep,
  about: Omit<StepScored, "_tag" | "score" | "details"> & { readonly agent: ActingAgent; readonly verbose: boolean },
): StepScored => {
  const { agent, verbose, ...rest } = about
  const event = { _tag: "StepScored" as const, ...rest, score: step.score }
  if (!verbose) return event
  const { score: _, ...details } = step
  return { ...event, details: { ...details, model: agent.model, agent: agent.type } }
}

/**
 * Makes the events of an episode: one for each step, and one for the failure if it failed. `seenEpisodes` is the number
 * of training episodes before the validation; in an evaluation, it is the index of the agent.
 */
export const eventsOf = (
  { index, env, steps, totalScore, error }: EpisodeToScore,
  { seenEpisodes, ...actor }: { readonly seenEpisodes: number; readonly agent: ActingAgent; readonly verbose: boolean },
): ReadonlyArray<RunEvent> => {
  const about = {
    mode: "validation" as const,
    seenEpisodes,
    episode: index + 1,
    envId: env.id,
    envType: env.type,
  }
  let episodeScore = 0
  const events: Array<RunEvent> = steps.map((step, at) => {
    episodeScore += step.score
    return stepScored(step, { ...about, ...actor, stepIndex: at + 1, episodeScore })
  })
  if (error === null) return events
  const failure = { score: null, stepIndex: steps.length + 1, episodeScore: totalScore, error: error.message }
  return [...events, { _tag: "StepScored", ...about, ...failure }]
}

/** Makes the event of an ended episode. Its reason is null for `max_seq_len` (a text too long for the model). */
export const episodeEnded = (
  about: Pick<EpisodeEnded, "step" | "episode" | "return" | "length">,
  { terminated, truncated, truncationReason: reason }: RolloutEnding,
): EpisodeEnded => ({
  _tag: "EpisodeEnded",
  ...about,
  env: 0,
  terminated,
  truncated,
  truncationReason: reason === "max_seq_len" ? null : reason,
})
