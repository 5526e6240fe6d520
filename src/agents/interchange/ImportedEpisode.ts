/**
 * Defines an episode of an evaluation that another program played, and makes of it the records that our evaluations have: the
 * episode with its steps, and its row in the table. These are pure functions.
 */
import { type EpisodeToScore, lastOf, scored } from "../evaluate/PlayedEpisode.ts"
import type { EpisodeRow } from "../evaluate/rows.ts"
import { importedType } from "../evaluate/report/sameTasks.ts"
import { notEnded, type Rollout, scoreOf, usageOf } from "../episode/Rollout.ts"

export interface ImportedEpisode {
  /** The agent's name in the evaluation. */
  readonly agent: string
  /** Tells apart agents of the same name; it is part of the name only if there are several. */
  readonly variant: string
  readonly model: string | null
  /** The set of tasks, which is part of a task's id only if there are several sets. */
  readonly group: string
  readonly task: { readonly id: string; readonly metadata: Readonly<Record<string, unknown>> }
  /** The position among the episodes of the task, counted from 0, if the program recorded it. */
  readonly repeat: number | null
  /** The scores by scorer name; null for a scorer that had nothing to score. */
  readonly scores: Readonly<Record<string, number | null>>
  readonly answer: string | null
  readonly target: string | null
  readonly durationMillis: number
  /** The tokens of the episode, if the rollouts do not have them. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number }
  readonly error: EpisodeRow["error"]
  /** The rollouts: first the agent's own, then those of sub-agents. Empty if there are none. */
  readonly rollouts: ReadonlyArray<Rollout>
  /** The row, if the episode was played by an evaluation of ours. */
  readonly row?: EpisodeRow | undefined
}

/** The positions of an episode in its evaluation. */
interface EpisodePosition {
  readonly index: number
  readonly task: number
  readonly repeat: number
}

/**
 * Gives the rollouts of an episode the ids that they have in evaluations of ours: the first one that of the episode, and those
 * of its sub-agents ids that begin with it. So exports find the row of an episode.
 */
export const renamed = (rollouts: ReadonlyArray<Rollout>, episode: string): ReadonlyArray<Rollout> => {
  const [first] = rollouts
  const idOf = (id: string): string =>
    id === first.id || id.startsWith(`${first.id}/`) ? `${episode}${id.slice(first.id.length)}` : id
  return rollouts.map((rollout) => {
    const { id, meta } = rollout
    const parentRolloutId = meta.parentRolloutId === null ? null : idOf(meta.parentRolloutId)
    return { ...rollout, id: idOf(id), meta: { ...meta, parentRolloutId } }
  })
}

/** Makes the episode as evaluations of ours record it. */
export const playedOf = (episode: ImportedEpisode, position: EpisodePosition): EpisodeToScore => {
  const { task, rollouts, error, durationMillis, row } = episode
  const [first] = rollouts
  const steps = (first?.steps ?? []).flatMap((step) => scored(step) ?? [])
  return {
    ...position,
    env: { id: task.id, type: row?.env_type ?? importedType, metadata: task.metadata },
    steps: steps.map((step) => ({ ...step, startedAtMillis: 0, endedAtMillis: 0 })),
    totalScore: steps.reduce((sum, { score }) => sum + score, 0),
    ending: first?.ending ?? notEnded,
    rollouts,
    error,
    startedAtMillis: 0,
    endedAtMillis: durationMillis,
  }
}

/** Makes the row of an episode in the table of the evaluation. */
export const rowOf = (episode: ImportedEpisode, played: EpisodeToScore): EpisodeRow => {
  const { agent, scores, rollouts, usage, error } = episode
  const { index, task, repeat, env, ending, endedAtMillis } = played
  const about = { agent, episode_index: index + 1, task, repeat }
  if (episode.row !== undefined) return { ...episode.row, ...about }
  const { answer, target } = lastOf(played)
  const used = usageOf(rollouts)
  return {
    ...about,
    env_id: env.id,
    env_type: env.type,
    metadata: env.metadata,
    answer: episode.answer ?? answer,
    target: episode.target ?? target,
    score: rollouts.length === 0 ? 0 : scoreOf(rollouts[0]),
    scores: error === null ? scores : {},
    steps: played.steps.length,
    terminated: ending.terminated,
    truncated: ending.truncated,
    truncation_reason: ending.truncationReason,
    calls: used.calls,
    retries: used.retries,
    input_tokens: usage?.inputTokens ?? used.inputTokens,
    output_tokens: usage?.outputTokens ?? used.outputTokens,
    cost: null,
    duration_ms: endedAtMillis,
    error,
  }
}
