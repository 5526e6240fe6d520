/**
 * Makes the transcript of an episode that has no rollout, from its scores and the files of its model calls. These are pure
 * functions.
 */
import type { CallFile } from "../../../agents/lm/callFiles.ts"
import type { StepScoreRecord } from "../../../run/record/stepScores.ts"
import type { ChatMessage } from "../../../agents/lm/Chat.ts"
import type { ListedEpisode } from "./Episode.ts"
import { finite } from "../json.ts"
import { addUsage, endingOf, keptOf, nothingUsed } from "./fromRollouts.ts"
import type { Call, ToolUse, Transcript, TranscriptTurn } from "./Transcript.ts"

interface ScoredEpisode {
  readonly episode: ListedEpisode
  /** The largest absolute advantage of the run's episodes; null if none has one. */
  readonly largest: number | null
  /**
   * Whether a multi-run trainer recorded the episode. Such a trainer records no calls, because the observations are the
   * prompts.
   */
  readonly isTrainers: boolean
}

/**
 * Makes the transcript from an episode's scored steps and its calls, both in the order in which they happened.
 */
export const fromScores = (
  { episode, largest, isTrainers }: ScoredEpisode,
  lines: ReadonlyArray<StepScoreRecord>,
  calls: ReadonlyArray<CallFile>,
): Transcript => {
  const steps = new Set(lines.map((line) => line.step_index))
  let before: ReadonlyArray<ChatMessage> = []
  const called = calls.map((file, at): readonly [CallFile, Call] => {
    const call = callOf(file, before, calls[at + 1])
    before = file.request.messages
    return [file, call]
  })
  const callsOf = (wanted: (file: CallFile) => boolean): ReadonlyArray<Call> =>
    called.flatMap(([file, call]) => (wanted(file) ? [call] : []))
  // The parser's bonuses and penalties so far, which are part of the rewards but not of the scores.
  let bonus = 0
  const turns = lines.map((line, at): TranscriptTurn => {
    const calls = callsOf(({ purpose, step_index }) => purpose === "action" && step_index === line.step_index)
    const reward = line.reward ?? line.score ?? 0
    bonus += reward - (line.score ?? 0)
    return { ...turnOf(line, at === lines.length - 1), calls, reward, cumulative: line.episode_cum_score + bonus }
  })
  const cumulative = turns.at(-1)?.cumulative ?? 0
  const after = callsOf(({ purpose, step_index }) => purpose === "reflection" || !steps.has(step_index))
  const { agent, ending, reason } = episode
  const model = calls.at(0)?.model ?? lines.at(0)?.lm_model ?? null
  const hasAdvantage = turns.some(({ advantage }) => advantage !== null)
  const isVerbose = lines.some((line) => line.observation !== undefined)
  return {
    episode,
    envType: lines.at(0)?.env_type ?? "",
    seeds: null,
    tags: {},
    usage: calls.reduce((all, { usage }) => (usage === null ? all : addUsage(all, usage)), nothingUsed),
    played: {
      id: episode.key,
      name: agent ?? "agent",
      depth: 0,
      player: null,
      model,
      return: episode.return,
      length: episode.length,
      ending,
      reason,
      credits: { own: episode.return, parents: episode.return, mixed: episode.return, sampled: null },
      turns: after.length === 0 ? turns : [...turns, { ...nothingDone, calls: after, cumulative }],
    },
    largest: hasAdvantage ? largest : null,
    advantages: hasAdvantage ? "episode" : null,
    hint: isVerbose && (calls.length > 0 || isTrainers) ? null : hintOf(isVerbose),
  }
}

const hintOf = (isVerbose: boolean): string =>
  isVerbose
    ? "What the model was asked isn't in the run's files: output.save_rollouts keeps it."
    : "Only scores were kept: output.save_rollouts, or runtime.verbose_score_logging, keeps what was seen and done."

/** The fields of a turn in which the env did nothing. */
const nothingDone = {
  observation: null,
  action: null,
  feedback: null,
  reward: 0,
  seen: null,
  ending: null,
  reason: null,
  info: null,
  failed: null,
  credit: null,
  weight: null,
  advantage: null,
  said: null,
}

const turnOf = (line: StepScoreRecord, isLast: boolean) => ({
  ...nothingDone,
  observation: line.observation ?? null,
  action: line.action ?? null,
  feedback: feedbackOf(line.feedback),
  seen: isLast ? (line.next_observation ?? null) : null,
  ending: endingOf({ terminated: line.terminated === true, truncated: line.truncated === true }),
  reason: line.truncation_reason ?? null,
  info: line.info !== undefined && Object.keys(line.info).length > 0 ? line.info : null,
  failed: line.error ?? null,
  said: typeof line.info?.["said"] === "string" ? line.info["said"] : null,
  advantage: finite(line.info?.["advantage"]),
})

const feedbackOf = (feedback: unknown): TranscriptTurn["feedback"] => {
  if (typeof feedback !== "object" || feedback === null) return null
  const { score, target, message, extra } = { score: 0, target: null, message: "", extra: null, ...feedback }
  return {
    score: typeof score === "number" ? score : 0,
    target: typeof target === "string" ? target : null,
    message: typeof message === "string" ? message : JSON.stringify(message),
    extra,
  }
}

/**
 * Describes one call. `before` is the previous call's prompt. The results of the tools are in the prompt of the next call.
 */
const callOf = (file: CallFile, before: ReadonlyArray<ChatMessage>, next: CallFile | undefined): Call => {
  const { request, response, error, usage } = file
  const kept = keptOf(before, request.messages)
  const answers = next?.request.messages.filter((message) => message.role === "tool") ?? []
  const tools = (response?.toolCalls ?? []).map((used): ToolUse => {
    const answer = answers.findLast(({ toolCallId }) => toolCallId === used.id)
    const result = answer === undefined ? null : { content: answer.content, isError: answer.isError ?? false }
    return { name: used.name, arguments: used.arguments, result, by: null }
  })
  return {
    id: `${file.purpose}-${file.step_index}-${file.call_index}`,
    purpose: file.purpose,
    target: null,
    model: response?.model ?? file.model,
    kept,
    messages: request.messages.slice(kept),
    said: response?.content ?? "",
    tools,
    refused: null,
    incomplete: response?.finishReason === "length",
    finish: response?.finishReason ?? "unknown",
    usage: usage ?? { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    attempts: response?.attempts ?? (file.retries ?? 0) + 1,
    failed: error?.message ?? (response === null ? "not answered yet" : null),
    tokens: null,
    children: [],
  }
}
