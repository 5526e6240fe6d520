/**
 * Writes the episodes of an agent as a log of Inspect (an `.eval` file, version 2 of its format), for its viewer and its readers.
 * A sample has the conversation, its scores, and an event for each call of a model, with the whole prompt, log-probabilities and
 * usage. Token ids, for which the format has no place, are in the metadata of the event's output.
 *
 * @example
 * ```ts
 * const [startedAt, endedAt] = [new Date(0), new Date(60_000)]
 * const about = { id: "capitals-mine", startedAt, endedAt, epochs: 1, scorers: ["exact"], version: "0.1.0" }
 * const log = new InspectLog({ agent: "mine", task: "capitals", model: "gpt-4.1-mini", ...about }, ({ env_id }) => env_id)
 * yield* log.add(row, rollouts)
 * yield* fs.writeFile("mine.eval", yield* log.finish())
 * ```
 */
import { Effect } from "effect"
import { isPlain } from "../../../base/config/plain.ts"
import { parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { FormatError } from "../../../base/formats/FormatError.ts"
import { ZipWriter } from "../../../base/formats/zip/ZipWriter.ts"
import type { EpisodeRow } from "../../evaluate/rows.ts"
import type { AgentStep, EnvironmentStep, Rollout, RolloutStep } from "../../episode/Rollout.ts"
import { asMessage, type ChatMessage, type Completion, type ToolCall } from "../../lm/Chat.ts"
import { conversationOf } from "../atif/writeAtif.ts"
import { ownKey } from "./EvalLog.ts"
import { resultsOf } from "./results.ts"

interface InspectLogOptions {
  /** The name of the tasks, which the viewer shows as the title. */
  readonly task: string
  readonly agent: string
  readonly model: string | null
  /** Identifies the log: logs with the same id are the same evaluation. */
  readonly id: string
  readonly startedAt: Date
  readonly endedAt: Date
  /** The number of episodes of each task. */
  readonly epochs: number
  /** The names of the scorers. */
  readonly scorers: ReadonlyArray<string>
  /** The version of this library. */
  readonly version: string
}

/** The name of the model if an agent asks none; Inspect requires one. */
const noModel = "none"

/** A log to which episodes are added one by one; they are compressed at once. */
export class InspectLog {
  private readonly zip = new ZipWriter()
  private readonly rows: Array<EpisodeRow> = []
  private readonly summaries: Array<unknown> = []
  private readonly usage = new Map<string, Counts>()
  private readonly options: InspectLogOptions
  private readonly idOf: (row: EpisodeRow) => string

  /** Makes an empty log. `idOf` returns the id of a row's task, by which Inspect knows a sample. */
  constructor(options: InspectLogOptions, idOf: (row: EpisodeRow) => string) {
    this.options = options
    this.idOf = idOf
  }

  /** Adds an episode: its row, and its rollouts, which are empty if it failed. */
  add(row: EpisodeRow, rollouts: ReadonlyArray<Rollout>): Effect.Effect<void, FormatError> {
    const id = this.idOf(row)
    const sample = sampleOf(row, rollouts, { ...this.options, id })
    for (const [model, counts] of Object.entries(sample.model_usage)) addCounts(this.usage, model, counts)
    this.rows.push(row)
    const { input, target, scores, model_usage, total_time, error, metadata, messages } = sample
    const summary = { input, target, metadata, scores, model_usage, total_time, error: error?.message ?? null }
    this.summaries.push({ id, epoch: sample.epoch, ...summary, completed: true, message_count: messages.length })
    return this.zip.add(`samples/${id}_epoch_${sample.epoch}.json`, jsonOf(sample))
  }

  /** Returns the bytes of the log. */
  finish(): Effect.Effect<Uint8Array, FormatError> {
    const { zip, options, rows, summaries } = this
    const spec = specOf(options, [...new Set(rows.map(this.idOf))])
    const plan = { name: "plan", steps: [{ solver: options.agent, params: {} }], config: {} }
    const { results, reductions } = resultsOf(rows, { ...options, idOf: this.idOf })
    const stats = {
      started_at: options.startedAt.toISOString(),
      completed_at: options.endedAt.toISOString(),
      model_usage: Object.fromEntries(this.usage),
    }
    const header = { version: 2, status: "success", eval: spec, plan, results, stats }
    return Effect.gen(function* () {
      yield* zip.add("_journal/start.json", jsonOf({ version: 2, eval: spec, plan }))
      yield* zip.add("_journal/summaries/1.json", jsonOf(summaries))
      yield* zip.add("summaries.json", jsonOf(summaries))
      yield* zip.add("reductions.json", jsonOf(reductions))
      yield* zip.add("header.json", jsonOf(header))
      return zip.finish()
    })
  }
}

const jsonOf = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value))

const specOf = (options: InspectLogOptions, ids: ReadonlyArray<string>) => {
  const { task, agent, model, id, startedAt, epochs, scorers, version } = options
  return {
    eval_id: id,
    run_id: id,
    task_id: id,
    created: startedAt.toISOString(),
    task,
    task_version: 0,
    task_attribs: {},
    task_args: {},
    solver: agent,
    dataset: { name: task, samples: ids.length, sample_ids: ids, shuffled: false },
    model: model ?? noModel,
    model_args: {},
    config: { epochs },
    packages: { "effect-rl": version },
    metadata: { [ownKey]: { agent } },
    scorers: scorers.map((name) => ({ name })),
  }
}

interface Counts {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly total_tokens: number
}

const countsOf = ({ usage: { inputTokens, outputTokens } }: Completion): Counts => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
})

const addCounts = (sums: Map<string, Counts>, model: string, counts: Counts): void => {
  const before = sums.get(model)
  sums.set(model, {
    input_tokens: (before?.input_tokens ?? 0) + counts.input_tokens,
    output_tokens: (before?.output_tokens ?? 0) + counts.output_tokens,
    total_tokens: (before?.total_tokens ?? 0) + counts.total_tokens,
  })
}

interface SampleContext extends InspectLogOptions {
  /** The id of the sample. */
  readonly id: string
}

const sampleOf = (row: EpisodeRow, rollouts: ReadonlyArray<Rollout>, context: SampleContext) => {
  const [first] = rollouts
  const steps = first?.steps ?? []
  const messages = first === undefined ? [] : conversationOf(first)
  const last = steps.findLast((step) => step._tag === "AgentStep" && step.call.purpose === "action")
  const pool = new MessagePool()
  const usage = new Map<string, Counts>()
  for (const step of rollouts.flatMap(({ steps: own }) => own)) {
    if (step._tag === "AgentStep") addCounts(usage, step.call.completion.model, countsOf(step.call.completion))
  }
  const events = rollouts.flatMap((rollout) => rollout.steps.map((step) => eventOf(step, { pool, context })))
  return {
    id: context.id,
    epoch: row.repeat + 1,
    input: inputOf(steps),
    target: row.target ?? "",
    messages: messages.map(({ message, isCompletion }) => ({
      ...messageOf(message),
      ...(message.role === "assistant" ? { source: isCompletion ? "generate" : "input" } : {}),
    })),
    output:
      last?._tag === "AgentStep" ? outputOf(last.call.completion) : { model: context.model ?? noModel, choices: [] },
    scores: scoresOf(row, steps),
    metadata: row.metadata,
    store: {},
    events,
    events_data: { messages: pool.messages, calls: [] },
    model_usage: Object.fromEntries(usage),
    total_time: row.duration_ms / 1000,
    attachments: {},
    ...(row.error === null
      ? {}
      : {
          error: {
            message: `${row.error.error}: ${row.error.message}`,
            traceback: row.error.message,
            traceback_ansi: row.error.message,
          },
        }),
  }
}

/** Returns the task as a text: the env's first observation, or the end of the first prompt. */
const inputOf = (steps: ReadonlyArray<RolloutStep>): string => {
  const env = steps.find((step) => step._tag === "EnvironmentStep")
  const call = steps.find((step) => step._tag === "AgentStep")
  return env?.observation ?? call?.call.messages.at(-1)?.content ?? ""
}

/** Converts scores. A scorer that had nothing to score has none. */
const scoresOf = ({ scores, answer }: EpisodeRow, steps: ReadonlyArray<RolloutStep>) => {
  const env = steps.findLast((step) => step._tag === "EnvironmentStep")
  const explanation = env?.feedback.message ?? ""
  return Object.fromEntries(
    Object.entries(scores).flatMap(([name, value]) =>
      value === null
        ? []
        : [
            [
              name,
              { value, ...(answer === null ? {} : { answer }), ...(explanation === "" ? {} : { explanation }) },
            ] as const,
          ],
    ),
  )
}

/* Messages */

const finishReasons = {
  stop: "stop",
  length: "max_tokens",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
  unknown: "unknown",
} as const satisfies Readonly<Record<Completion["finishReason"], string>>

const messageOf = (message: ChatMessage) => {
  const { role, content } = message
  if (role === "tool") {
    const { toolCallId, toolName, isError = false } = message
    const error = isError ? { error: { type: "unknown", message: content } } : {}
    return { role, content, tool_call_id: toolCallId, function: toolName, ...error }
  }
  if (role !== "assistant") return { role, content }
  const calls = message.toolCalls ?? []
  return { role, content, ...(calls.length === 0 ? {} : { tool_calls: calls.map(toolCallOf) }) }
}

/** Converts a tool call. Arguments that are no JSON object are kept in the error. */
const toolCallOf = ({ id, name, arguments: text }: ToolCall) => {
  const value = parsedJson(text)
  const call = { id, function: name, type: "function" }
  return isPlain(value) ? { ...call, arguments: value } : { ...call, arguments: {}, parse_error: text }
}

const outputOf = (completion: Completion) => {
  const { model, content, tokens, finishReason } = completion
  const logprobs = tokens?.logprobs?.map((logprob, at) => ({ token: tokens.texts?.[at] ?? "", logprob }))
  const message = { ...messageOf(asMessage(completion)), source: "generate", model }
  return {
    model,
    choices: [
      {
        message,
        stop_reason: finishReasons[finishReason],
        ...(logprobs === undefined ? {} : { logprobs: { content: logprobs } }),
      },
    ],
    completion: content,
    usage: { ...countsOf(completion), reasoning_tokens: completion.usage.reasoningTokens },
    ...(tokens === null
      ? {}
      : { metadata: { [ownKey]: { promptIds: tokens.promptIds, completionIds: tokens.completionIds } } }),
  }
}

/* Events */

/** The different messages of all prompts of a sample: long conversations would repeat them in every prompt. */
class MessagePool {
  readonly messages: Array<unknown> = []
  private readonly positions = new Map<string, number>()

  /** Returns the ranges of the pool that hold these messages, in their order. */
  rangesOf(messages: ReadonlyArray<ChatMessage>): ReadonlyArray<readonly [number, number]> {
    const ranges: Array<[number, number]> = []
    for (const message of messages) {
      const text = JSON.stringify(message)
      const at = this.positions.get(text) ?? this.messages.push(messageOf(message)) - 1
      this.positions.set(text, at)
      const last = ranges.at(-1)
      if (last !== undefined && last[1] === at) last[1] = at + 1
      else ranges.push([at, at + 1])
    }
    return ranges
  }
}

interface EventContext {
  readonly pool: MessagePool
  readonly context: SampleContext
}

const eventOf = (step: RolloutStep, { pool, context }: EventContext) => {
  // Rollouts have no times, so all events have that of the evaluation's start.
  const common = { uuid: `${context.id}/${step.id}`, timestamp: context.startedAt.toISOString(), working_start: 0 }
  return step._tag === "AgentStep" ? callEvent(step, common, pool) : envEvent(step, common)
}

const callEvent = ({ call }: AgentStep, common: object, pool: MessagePool) => ({
  ...common,
  event: "model",
  model: call.completion.model,
  input: [],
  input_refs: pool.rangesOf(call.messages),
  tools: (call.tools ?? []).map(({ name, description }) => ({ name, description })),
  tool_choice: "auto",
  config: {},
  output: outputOf(call.completion),
  retries: Math.max(0, call.completion.attempts - 1),
})

const envEvent = ({ action, nextObservation, feedback, reward }: EnvironmentStep, common: object) => ({
  ...common,
  event: "info",
  source: "env",
  data: { action, observation: nextObservation, feedback: feedback.message, score: feedback.score, reward },
})
