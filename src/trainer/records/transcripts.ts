/** Turns rollouts into lines of a run's scores, which the page shows as transcripts of what the agent wrote and did. */
import { stepScored } from "../../agents/evaluate/events.ts"
import { scored } from "../../agents/evaluate/PlayedEpisode.ts"
import type { Rollout } from "../../agents/episode/Rollout.ts"
import type { StepScored } from "../../run/record/RunEvent.ts"
import type { FailedEpisode } from "./reports.ts"

/** The facts about an episode for its transcript. */
interface TranscriptFacts extends Pick<StepScored, "mode" | "seenEpisodes" | "episode"> {
  /** Facts that are added to the `info` of each step, such as the advantage. */
  readonly info: Readonly<Record<string, unknown>>
  /** The time at which the episode was recorded. */
  readonly nowMillis: number
}

/** Makes the events of one episode, one for each of its steps. */
const transcriptOf = (
  { meta, steps }: Rollout,
  { mode, seenEpisodes, episode, info, nowMillis }: TranscriptFacts,
): ReadonlyArray<StepScored> => {
  const agent = { type: meta.agent, model: meta.model }
  const events: Array<StepScored> = []
  let episodeScore = 0
  for (const one of steps) {
    const step = scored(one)
    if (step === undefined) continue
    episodeScore += step.score
    const timed = {
      ...step,
      // The content of the answer is kept even if it could not be acted upon and is no action.
      info: { ...step.info, ...(one._tag === "AgentStep" ? { said: one.call.completion.content } : {}), ...info },
      startedAtMillis: nowMillis,
      endedAtMillis: nowMillis,
    }
    const about = { mode, seenEpisodes, episode, envId: meta.envId, envType: meta.envType }
    const stepIndex = events.length + 1
    events.push(stepScored(timed, { ...about, stepIndex, episodeScore, agent, verbose: true }))
  }
  return events
}

/** The rollouts of a step, with their advantages and groups. */
interface Played {
  readonly rollouts: ReadonlyArray<Rollout>
  readonly advantages: ArrayLike<number> | undefined
  readonly groupOf: ReadonlyArray<number>
}

/** Makes the transcripts of the first `groups` groups of a training step. */
export const transcriptsOfStep = (
  { rollouts, advantages, groupOf }: Played,
  {
    step,
    seenEpisodes,
    groups,
    nowMillis,
  }: Pick<TranscriptFacts, "seenEpisodes" | "nowMillis"> & {
    readonly step: number
    readonly groups: number
  },
): ReadonlyArray<StepScored> =>
  rollouts.flatMap((rollout, at) => {
    if (groupOf[at] >= groups) return []
    const advantage = advantages === undefined ? {} : { advantage: advantages[at] }
    const info = { step, group: groupOf[at], reward: rollout.totalReward, ...advantage }
    return transcriptOf(rollout, { mode: "train", seenEpisodes, episode: seenEpisodes + at + 1, info, nowMillis })
  })

/** Makes the transcripts of all episodes of a validation. The step is also in the name of the file that holds them. */
export const transcriptsOfValidation = (
  rollouts: ReadonlyArray<Rollout>,
  { step, nowMillis }: Pick<TranscriptFacts, "nowMillis"> & { readonly step: number },
): ReadonlyArray<StepScored> =>
  rollouts.flatMap((rollout, at) =>
    transcriptOf(rollout, { mode: "validation", seenEpisodes: step, episode: at + 1, info: {}, nowMillis }),
  )

/** Makes a line for each failed episode. Their numbers follow those of the `played` episodes. */
export const failuresOf = (
  failed: ReadonlyArray<FailedEpisode>,
  { mode, seenEpisodes, played }: Pick<TranscriptFacts, "mode" | "seenEpisodes"> & { readonly played: number },
): ReadonlyArray<StepScored> =>
  failed.map(({ id, envId, envType, message }, at) => ({
    _tag: "StepScored",
    mode,
    seenEpisodes,
    episode: (mode === "train" ? seenEpisodes : 0) + played + at + 1,
    stepIndex: 1,
    score: null,
    episodeScore: 0,
    envId,
    envType,
    error: `${id}: ${message}`,
  }))
