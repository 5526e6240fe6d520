/**
 * Reads logs of Inspect, `.eval` and `.json`, as episodes of an evaluation. A sample's messages become a rollout, whose calls get
 * the tokens and log-probabilities of the sample's events if there is one event for each. Hidden reasoning and pictures are left
 * out.
 */
import { Effect, Option, Schema, Stream } from "effect"
import type { ToolResult } from "../../agent/Agent.ts"
import type { ConfigError } from "../../../base/config/Config.ts"
import { checkJson, parseJson } from "../../../base/config/jsonFile.ts"
import { isPlain } from "../../../base/config/plain.ts"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { mostBytes } from "../../../base/files/files.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { type ZipEntry, zipEntries } from "../../../base/formats/zip/directory.ts"
import { unzip, type Unzstd } from "../../../base/formats/zip/unzip.ts"
import { importedType } from "../../evaluate/report/sameTasks.ts"
import type { ChatMessage, Completion, TokenTrace, ToolCall } from "../../lm/Chat.ts"
import { type ForeignEntry, foreignRollout } from "../foreignRollout.ts"
import type { ImportedEpisode } from "../ImportedEpisode.ts"
import { joiningParts, withinBudget } from "../promptBudget.ts"
import {
  type InspectContent,
  InspectHeader,
  InspectLog,
  type InspectMessage,
  InspectModelEvent,
  type InspectOutput,
  InspectSample,
  type InspectUsage,
  ownKey,
  unnamedScore,
} from "./EvalLog.ts"
import { scoresOf } from "./scores.ts"

type ReadError = FormatError | ConfigError

/** Replaces NaN and Infinity by null, except in strings. It reads each character once, however long the strings are. */
const withoutBareNumbers = (text: string): string => {
  let isInString = false
  return text.replace(/\\["\\]|"|-?\bInfinity\b|\bNaN\b/g, (part) => {
    if (part === '"') isInString = !isInString
    return isInString || part === '"' || part.startsWith("\\") ? part : "null"
  })
}

/** Parses JSON. Inspect writes numbers that are not finite as NaN and Infinity, which JSON does not have: they become null. */
const jsonOf = (bytes: Uint8Array, path: string): Effect.Effect<unknown, ConfigError> =>
  Effect.catch(parseJson(bytes, path), (error) => {
    const text = utf8.decode(bytes)
    const repaired = withoutBareNumbers(text)
    return repaired === text ? Effect.fail(error) : parseJson(utf8.encode(repaired), path)
  })

/** Reads the episodes of a log in a JSON file that was parsed already. */
export const episodesOfJson = (value: unknown, path: string): Stream.Stream<ImportedEpisode, ReadError> =>
  Stream.unwrap(
    Effect.map(checkJson(InspectLog, value, path), (log) =>
      Stream.mapEffect(Stream.fromIterable(log.samples ?? []), (sample) => episodeIn(path, sample, log)),
    ),
  )

/** Parses the JSON of a log, for `episodesOfJson`. */
export const parseLog = jsonOf

/** Reads the episodes of an `.eval` file, which is a zip archive. Newer logs need `unzstd`. */
export const episodesOfArchive = (
  bytes: Uint8Array,
  path: string,
  unzstd: Unzstd | undefined,
): Stream.Stream<ImportedEpisode, ReadError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const entries = yield* Effect.try({
        try: () => new Map(zipEntries(bytes).map((entry) => [entry.name, entry])),
        catch: (error) =>
          inFile(path, error instanceof FormatError ? error : new FormatError({ message: String(error) })),
      })
      const read = Effect.fnUntraced(function* (entry: ZipEntry) {
        const contents = yield* Effect.mapError(unzip(entry, { most: mostBytes.text, unzstd }), (error) =>
          inFile(path, error),
        )
        return yield* jsonOf(contents, `${path}: ${entry.name}`)
      })
      // A log that is still being written, or was stopped, has only its start.
      const head = entries.get("header.json") ?? entries.get("_journal/start.json")
      if (head === undefined) {
        const problem = "expected a log of Inspect, found an archive without header.json"
        return yield* new FormatError({ path, message: `${path}: ${problem}` })
      }
      const value = yield* read(head)
      const source = `${path}: ${head.name}`
      const header = yield* checkJson(InspectHeader, isPlain(value) ? { status: "started", ...value } : value, source)
      const samples = [...entries.values()].filter(({ name }) => /^samples\/.*\.json$/s.test(name))
      return Stream.mapEffect(Stream.fromIterable(samples), (entry) =>
        read(entry).pipe(
          Effect.flatMap((sample) => checkJson(InspectSample, sample, `${path}: ${entry.name}`)),
          Effect.flatMap((sample) => episodeIn(path, sample, header)),
        ),
      )
    }),
  )

/** Makes the episode of a sample. Fails if its prompts are too long. */
const episodeIn = (
  path: string,
  sample: InspectSample,
  header: InspectHeader,
): Effect.Effect<ImportedEpisode, FormatError> =>
  Effect.mapError(
    withinBudget(() => episodeOf(sample, header)),
    (error) => inFile(path, error),
  )

const inFile = (path: string, { message, offset }: FormatError): FormatError =>
  new FormatError({ path, message: `${path}: ${message}`, ...(offset === undefined ? {} : { offset }) })

/** Returns the name that our own logs have for their agent; that of the model in other logs. */
const agentOf = ({ eval: { model, metadata } }: InspectHeader): string => {
  const own = metadata?.[ownKey]
  return isPlain(own) && typeof own.agent === "string" ? own.agent : model
}

const episodeOf = (sample: InspectSample, header: InspectHeader): ImportedEpisode => {
  const { model } = header.eval
  const id = String(sample.id)
  const scores = scoresOf(sample.scores ?? (isPlain(sample.score) ? { [unnamedScore]: sample.score } : {}))
  const target = (typeof sample.target === "string" ? sample.target : (sample.target[0] ?? "")).trim()
  const text = textIn(sample)
  const entries = entriesOf(sample, { model, text })
  const { rollout } = foreignRollout({
    id: `${id}-${sample.epoch}`,
    task: { id, type: importedType },
    agent: agentOf(header),
    model,
    tools: [],
    entries,
    reward: Object.values(scores.values)[0] ?? null,
    target: target === "" ? null : target,
  })
  const error = sample.error ?? null
  const usages = sample.model_usage ?? {}
  return {
    agent: agentOf(header),
    variant: header.eval.solver ?? "",
    model,
    group: header.eval.task,
    task: { id, metadata: sample.metadata ?? {} },
    repeat: Math.max(0, sample.epoch - 1),
    scores: scores.values,
    answer: scores.answer,
    target: target === "" ? null : target,
    durationMillis: (sample.total_time ?? 0) * 1000,
    ...(Object.keys(usages).length === 0 ? {} : { usage: totalOf(Object.values(usages)) }),
    error: error === null ? null : { error: "EvalError", message: error.message },
    // As in our own evaluations, an episode that failed has no rollout.
    rollouts: error === null && rollout.steps.length > 0 ? [rollout] : [],
  }
}

/** Adds up usage. Tokens that were read from a cache, or written to one, are input tokens, too. */
const totalOf = (usages: ReadonlyArray<InspectUsage>) => {
  let inputTokens = 0
  let outputTokens = 0
  for (const { input_tokens, output_tokens, input_tokens_cache_read, input_tokens_cache_write } of usages) {
    inputTokens += (input_tokens ?? 0) + (input_tokens_cache_read ?? 0) + (input_tokens_cache_write ?? 0)
    outputTokens += output_tokens ?? 0
  }
  return { inputTokens, outputTokens }
}

type TextOf = (content: InspectContent) => string

/** Makes a function that returns the text of a content, with the texts of the sample that it refers to. */
const textIn = ({ attachments, id }: InspectSample): TextOf => {
  const joinedParts = joiningParts(String(id))
  const resolved = (text: string): string => {
    const [, key] = /^(?:attachment|tc):\/\/(.+)$/.exec(text) ?? []
    return key !== undefined && Object.hasOwn(attachments ?? {}, key) ? (attachments?.[key] ?? text) : text
  }
  return (content) => {
    if (typeof content === "string") return resolved(content)
    const shown = content.filter(({ type }) => type !== "reasoning")
    return joinedParts(shown.map(({ type, text }) => (typeof text === "string" ? resolved(text) : `[${type}]`)))
  }
}

const isModelEvent = Schema.decodeUnknownOption(InspectModelEvent)

/** Converts the messages of a sample. Those of the assistant are completions, unless they were part of the input. */
const entriesOf = (
  sample: InspectSample,
  { model, text }: { readonly model: string; readonly text: TextOf },
): ReadonlyArray<ForeignEntry> => {
  const messages = sample.messages ?? []
  const isCompletion = ({ role, source }: InspectMessage) => role === "assistant" && source !== "input"
  const count = messages.filter(isCompletion).length
  const outputs = (sample.events ?? []).flatMap((event) => Option.toArray(isModelEvent(event)))
  const matching = outputs.length === count ? outputs.map(({ output }) => output) : []
  const entries: Array<ForeignEntry> = []
  let completions = 0
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]
    if (!isCompletion(message)) {
      entries.push({ _tag: "Message", message: messageOf(message, text) })
      continue
    }
    completions++
    const only = count === 1 ? sample.output : undefined
    const output = matching.at(completions - 1) ?? only ?? undefined
    const results: Array<ToolResult> = []
    while (messages.at(at + 1)?.role === "tool" && at + 1 < messages.length) {
      results.push(resultOf(messages[++at], text))
    }
    entries.push({ _tag: "Completion", completion: completionOf(message, output, { model, text }), results })
  }
  return entries
}

const messageOf = (message: InspectMessage, text: TextOf): ChatMessage => {
  const content = text(message.content)
  if (message.role === "system" || message.role === "user") return { role: message.role, content }
  if (message.role === "tool") {
    const { isError, ...result } = resultOf(message, text)
    return { role: "tool", ...result, ...(isError ? { isError } : {}) }
  }
  const toolCalls = callsOf(message)
  return toolCalls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls }
}

const callsOf = ({ tool_calls }: InspectMessage): ReadonlyArray<ToolCall> =>
  (tool_calls ?? []).map(({ id, function: name, arguments: given }) => ({ id, name, arguments: JSON.stringify(given) }))

const resultOf = (message: InspectMessage, text: TextOf): ToolResult => {
  const { content, error, tool_call_id: id } = message
  const shown = text(content)
  const failure = error?.message
  return {
    toolCallId: typeof id === "string" ? id : (id?.[0] ?? ""),
    toolName: message.function ?? "",
    content: shown === "" && failure !== undefined ? failure : shown,
    isError: failure !== undefined,
  }
}

const finishReasons: Readonly<Record<string, Completion["finishReason"]>> = {
  stop: "stop",
  max_tokens: "length",
  length: "length",
  model_length: "length",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
}

const completionOf = (
  message: InspectMessage,
  output: InspectOutput | undefined,
  { model, text }: { readonly model: string; readonly text: TextOf },
): Completion => {
  const toolCalls = callsOf(message)
  const { usage } = output ?? {}
  const choice = output?.choices?.[0]
  const reason = choice?.stop_reason ?? (toolCalls.length === 0 ? "stop" : "tool_calls")
  return {
    content: text(message.content),
    toolCalls,
    finishReason: Object.hasOwn(finishReasons, reason) ? finishReasons[reason] : "unknown",
    usage: {
      ...totalOf(usage === undefined || usage === null ? [] : [usage]),
      reasoningTokens: usage?.reasoning_tokens ?? 0,
    },
    tokens: tokensOf(output),
    model: output?.model ?? message.model ?? model,
    attempts: 1,
  }
}

const Ids = Schema.Struct({ promptIds: Schema.Array(Schema.Int), completionIds: Schema.Array(Schema.Int) })
const isIds = Schema.decodeUnknownOption(Ids)

/** Returns the tokens of a call. Inspect's format has no place for token ids, so only our own logs have them. */
const tokensOf = (output: InspectOutput | undefined): TokenTrace | null => {
  const ids = Option.getOrUndefined(isIds(output?.metadata?.[ownKey]))
  if (ids === undefined) return null
  const content = output?.choices?.[0]?.logprobs?.content
  const logprobs = content?.map(({ logprob }) => logprob ?? 0)
  return { ...ids, logprobs: logprobs?.length === ids.completionIds.length ? logprobs : null }
}
