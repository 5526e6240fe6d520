/** Converts scored steps and episodes to a run's events, for evaluations and for trainings of agents. */
import type { Ending } from "../episode/Rollout.ts"
import type { EpisodeEnded, RunEvent, StepScored } from "../run/record/RunEvent.ts"
import type { PlayedEpisode, TimedStep } from "./PlayedEpisode.ts"

export interface Actor {
  readonly type: string
  readonly model: string | null
}

/** Makes the event of one scored step; it has observation, action and further details only if `verbose` is set. */
export const stepScored = (
  step: TimedStep,
  about: Omit<StepScored, "_tag" | "score" | "details"> & { readonly agent: Actor; readonly verbose: boolean },
): StepScored => {
  const { agent, verbose, ...rest } = about
  const event = { _tag: "StepScored" as const, ...rest, score: step.score }
  if (!verbose) return event
  const { score: _, ...details } = step
  return { ...event, details: { ...details, model: agent.model, agent: agent.type } }
}

/** Makes the events of a validation episode: one for each step, and one for the failure if the episode failed. */
export const eventsOf = (
  { index, env, steps, totalScore, error }: PlayedEpisode,
  { seenEpisodes, ...how }: { readonly seenEpisodes: number; readonly agent: Actor; readonly verbose: boolean },
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
    return stepScored(step, { ...about, ...how, stepIndex: at + 1, episodeScore })
  })
  if (error === null) return events
  const failure = { score: null, stepIndex: steps.length + 1, episodeScore: totalScore, error: error.message }
  return [...events, { _tag: "StepScored", ...about, ...failure }]
}

/** Makes the event of an ended episode. The reason `max_seq_len` (a text too long for the model) becomes null. */
export const episodeEnded = (
  about: Pick<EpisodeEnded, "step" | "episode" | "return" | "length">,
  { terminated, truncated, truncationReason: reason }: Ending,
): EpisodeEnded => ({
  _tag: "EpisodeEnded",
  ...about,
  env: 0,
  terminated,
  truncated,
  truncationReason: reason === "max_seq_len" ? null : reason,
})
