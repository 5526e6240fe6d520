/**
 * Finds the episodes in the lines of a file, and keeps the offsets of each episode's lines. A line contains a rollout, an
 * outcome (the rollouts or the error of a requested episode), or a scored step. `transcripts.ts` passes the lines.
 */
import { agentTypeOf } from "../../../agents/agent/agentType.ts"
import { fields, finite, parsed } from "../json.ts"
import type { ListedEpisode } from "./Episode.ts"
import { endingOf } from "./fromRollouts.ts"

/** A group of episodes that were played together, such as those of one validation. */
export interface EpisodeGroup {
  readonly name: string
  readonly phase: ListedEpisode["phase"]
  readonly seen: number | null
  readonly contestant: string | null
}

/** A part of a file: the byte offsets of its beginning and of its end. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** An episode and the parts of the file from which it is read. */
export interface IndexedEpisode extends ListedEpisode {
  readonly file: string
  readonly spans: ReadonlyArray<Span>
}

/** An unfinished episode, whose fields change while its lines are read. */
type Making = { -readonly [Key in keyof IndexedEpisode]: IndexedEpisode[Key] } & { spans: Array<Span> }

/** Collects episodes from the lines of a file, which are added one by one in their order. Other lines are skipped. */
export interface FileIndex {
  readonly episodes: ReadonlyArray<IndexedEpisode>
  readonly add: (line: Span & { readonly text: string }) => void
}

const string = (value: unknown): string | null => (typeof value === "string" ? value : null)

/** Makes an episode when its first line, at `span`, has been read. The caller sets the fields that have no value yet. */
const begun = (file: string, { name, phase, seen, contestant }: EpisodeGroup, number: number, span: Span): Making => ({
  key: `${name}-${number}`,
  group: name,
  phase,
  seen,
  contestant,
  number,
  id: null,
  env: "",
  agent: null,
  player: null,
  return: 0,
  length: 0,
  ending: null,
  reason: null,
  failed: null,
  delegated: 0,
  trained: null,
  file,
  spans: [{ from: span.from, to: span.to }],
})

/**
 * Adds a line to spans. If the line directly follows the last span, that span is extended. A line that is passed twice is
 * added only once.
 */
const addSpan = (spans: Array<Span>, { from, to }: Span): void => {
  const last = spans.at(-1)
  if (last?.from === from) return
  if (last?.to === from) spans[spans.length - 1] = { from: last.from, to }
  else spans.push({ from, to })
}

/** Makes the index of a file with rollouts or outcomes. A delegated rollout is added to the episode of its parent. */
export const rolloutsIndex = (file: string, group: EpisodeGroup): FileIndex => {
  const episodes: Array<Making> = []
  const byId = new Map<string, Making>()
  const keys = new Set<string>()

  /**
   * Returns the number at the end of a training episode's id if no other episode has it; otherwise the position of the
   * episode in the file.
   */
  const numberOf = (id: string): number => {
    const idNumber = group.phase === "train" ? Number(/-(\d+)$/.exec(id)?.[1]) : NaN
    return Number.isSafeInteger(idNumber) && !keys.has(`${group.name}-${idNumber}`) ? idNumber : episodes.length + 1
  }

  const begin = (id: string, span: Span): Making => {
    let number = numberOf(id)
    while (keys.has(`${group.name}-${number}`)) number++
    const episode = begun(file, group, number, span)
    keys.add(episode.key)
    episodes.push(episode)
    return episode
  }

  const addRollout = (value: unknown, span: Span): void => {
    const { id, meta, totalReward, length, ending } = fields(value)
    const { envId, agent, player, parentRolloutId } = fields(meta)
    if (typeof id !== "string" || typeof envId !== "string") return
    const parentEpisode = typeof parentRolloutId === "string" ? byId.get(parentRolloutId) : undefined
    if (parentEpisode !== undefined) {
      byId.set(id, parentEpisode)
      parentEpisode.delegated++
      return addSpan(parentEpisode.spans, span)
    }
    const { terminated, truncated, truncationReason } = fields(ending)
    const episode = begin(id, span)
    byId.set(id, episode)
    episode.id = id
    episode.env = envId
    episode.agent = string(agent)
    episode.player = string(player)
    episode.return = finite(totalReward) ?? 0
    episode.length = finite(length) ?? 0
    episode.ending = endingOf({ terminated: terminated === true, truncated: truncated === true })
    episode.reason = string(truncationReason)
  }

  return {
    episodes,
    add: (line) => {
      const value = parsed(line.text)
      const { rollouts, failure, request } = fields(value)
      if (!Array.isArray(rollouts)) return addRollout(value, line)
      for (const rollout of rollouts) addRollout(rollout, line)
      const { message } = fields(failure)
      if (typeof message !== "string" || rollouts.length > 0) return
      const id = string(fields(request).id) ?? ""
      const episode = begin(id, line)
      // The env is unknown, so the list shows the id of the request instead.
      episode.env = id
      episode.failed = message
    },
  }
}

/** The largest number of characters of a task or an answer in the list of episodes. */
const mostShown = 80

const beginning = (value: unknown): string | null => string(value)?.slice(0, mostShown) ?? null

/**
 * Reads the data that a multi-run trainer wrote into a line of scores; null for other lines. `before` is the data of the line
 * before.
 */
const trainedIn = (
  record: Readonly<Record<string, unknown>>,
  before: ListedEpisode["trained"],
): ListedEpisode["trained"] => {
  const { step, group, advantage, said } = fields(record.info)
  const [ofStep, ofGroup] = [finite(step), finite(group)]
  if (ofStep === null || ofGroup === null) return null
  return {
    step: ofStep,
    group: ofGroup,
    advantage: finite(advantage),
    task: before?.task ?? beginning(record.observation),
    answer: beginning(record.action) ?? beginning(said) ?? before?.answer ?? null,
  }
}

/** Makes the index of a file of scores, whose lines are steps. */
export const scoresIndex = (file: string, group: EpisodeGroup): FileIndex => {
  const episodes: Array<Making> = []
  const byNumber = new Map<number, Making>()
  return {
    episodes,
    add: (line) => {
      const record = fields(parsed(line.text))
      const number = finite(record.episode_index)
      const total = finite(record.episode_cum_score)
      if (number === null || total === null) return
      let episode = byNumber.get(number)
      if (episode === undefined) {
        episode = begun(file, group, number, line)
        byNumber.set(number, episode)
        episodes.push(episode)
      } else {
        addSpan(episode.spans, line)
      }
      episode.env = string(record.env_id) ?? episode.env
      const type = string(record.agent_type)
      episode.agent = type === null ? episode.agent : agentTypeOf(type)
      episode.return = total
      const error = string(record.error)
      if (error === null) episode.length++
      episode.failed = error ?? episode.failed
      episode.ending = endingOf({ terminated: record.terminated === true, truncated: record.truncated === true })
      episode.reason = string(record.truncation_reason)
      episode.trained = trainedIn(record, episode.trained)
    },
  }
}

export type SamplesIndex = ReturnType<typeof samplesIndex>

/** Makes the index of a file of samples, which maps each rollout's id to the parts of the file with its samples. */
export const samplesIndex = () => {
  const spans = new Map<string, Array<Span>>()
  return {
    spans,
    add: (line: Span & { readonly text: string }): void => {
      const { rollout_id } = fields(parsed(line.text))
      if (typeof rollout_id !== "string") return
      const ofRollout = spans.get(rollout_id) ?? []
      spans.set(rollout_id, ofRollout)
      addSpan(ofRollout, line)
    },
  }
}
