/**
 * Writes every call of a model as a file: `llm_calls/train/actions/action_episode_000001_step_0001_call_00.json`. The file is
 * written when the call begins, and again with the response when it ends.
 *
 * @example
 * ```ts
 * const recorded = logged(lm).complete(request).pipe(Effect.provideService(CallSink, callFiles(runFiles)))
 * ```
 */
import { Effect, Schema } from "effect"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import { asPrompts, Completion, LmRequest, Usage } from "./Chat.ts"
import { CallRecord, type CallSink } from "./middleware/logged.ts"
import { callFile } from "../../run/Layout.ts"
import { timestamp } from "../../run/record/timestamp.ts"
import { prettyJson } from "../../base/text/text.ts"

/** The content of the file of a model call. The response is null until the call ends. */
export const CallFile = Schema.Struct({
  timestamp: Schema.String,
  timestamp_end: Schema.NullOr(Schema.String),
  model: Schema.String,
  phase: Schema.Literals(["train", "validation", "default"]),
  /** The number of training episodes that had ended before the validation; null outside of validations. */
  seen_episodes: Schema.NullOr(Schema.Int),
  purpose: Schema.Literals(["action", "reflection", "judgement"]),
  episode_index: Schema.Int,
  step_index: Schema.Int,
  /** The number of the call within its step, from 0. */
  call_index: Schema.Int,
  request: LmRequest,
  response: Schema.NullOr(Completion),
  error: CallRecord.fields.error,
  usage: Schema.NullOr(Usage),
  latency_ms: Schema.NullOr(Schema.Finite),
  /** The number of retries; null until the call has ended. */
  retries: Schema.NullOr(Schema.Int),
})
export type CallFile = typeof CallFile.Type

/** Returns the path of a call's file. It contains no time: if a step is played again, its calls replace these files. */
const pathOf = ({ phase, ...context }: CallRecord["context"], call: number): string =>
  callFile({ ...context, phase: phase._tag === "validation" ? phase : phase._tag }, call)

const fileOf = (record: CallRecord, callIndex: number): CallFile => {
  const { context, response, error, startedAtMillis, endedAtMillis } = record
  const attempts = response?.attempts ?? error?.attempts
  return {
    timestamp: timestamp(startedAtMillis),
    timestamp_end: endedAtMillis === null ? null : timestamp(endedAtMillis),
    model: record.model,
    phase: context.phase._tag,
    seen_episodes: context.phase._tag === "validation" ? context.phase.seenEpisodes : null,
    purpose: context.purpose,
    episode_index: context.episode,
    step_index: context.step,
    call_index: callIndex,
    request: record.request,
    response,
    error,
    usage: response?.usage ?? null,
    latency_ms: endedAtMillis === null ? null : Math.round((endedAtMillis - startedAtMillis) * 1000) / 1000,
    retries: attempts === undefined ? null : Math.max(0, attempts - 1),
  }
}

const withoutPunctuation = (millis: number): string => timestamp(millis).replace(/[-:.]/g, "")

/**
 * Returns the content of a call's file with the keys of another runtime (form `original`), which has two prompts for each
 * call.
 */
const originalFileOf = ({ model, context, request, response, error, startedAtMillis, endedAtMillis }: CallRecord) => {
  const { phase, purpose, episode, step } = context
  const { system, prompt } = asPrompts(request.messages)
  const usage = response?.usage
  const seconds = endedAtMillis === null ? 0 : (endedAtMillis - startedAtMillis) / 1000
  return {
    timestamp: withoutPunctuation(startedAtMillis),
    model,
    system_prompt: system,
    user_prompt: prompt,
    context: {
      mode: phase._tag === "validation" ? "val" : phase._tag,
      ...(phase._tag === "validation" ? { num_seen_episodes: phase.seenEpisodes } : {}),
      ...(purpose === "action" ? {} : { call_type: purpose }),
      episode_index: episode,
      step_index: step,
    },
    ...(endedAtMillis === null
      ? {}
      : { output: response?.content ?? "", timestamp_end: withoutPunctuation(endedAtMillis) }),
    ...(usage === undefined
      ? {}
      : {
          extra: {
            metrics: {
              duration: seconds,
              input_tokens: usage.inputTokens,
              thinking_tokens: usage.reasoningTokens,
              output_tokens: usage.outputTokens,
              total_tokens: usage.inputTokens + usage.outputTokens,
            },
          },
        }),
    ...(error === null ? {} : { extra: { error: error.message } }),
  }
}

/** The number of steps of agents whose calls are counted at the same time. It is far more than are ever in progress. */
const rememberedSteps = 1 << 16

/**
 * Makes the sink that writes a run's calls to files, with our own keys or those of the other runtime. A failure to write is a
 * defect, which ends the run.
 */
export const callFiles = (run: RunFiles, form: "own" | "original" = "own"): CallSink => {
  const counts = new Map<string, number>()
  const nextIn = (step: string): number => {
    const count = counts.get(step) ?? 0
    // Move this step to the end of the map, because the first entries are deleted when the map is full.
    counts.delete(step)
    counts.set(step, count + 1)
    if (counts.size > rememberedSteps) {
      const [oldest] = counts.keys()
      counts.delete(oldest)
    }
    return count
  }
  return {
    begin: (begun) =>
      Effect.suspend(() => {
        const index = nextIn(pathOf(begun.context, 0))
        const path = pathOf(begun.context, index)
        const write = (record: CallRecord): Effect.Effect<void> =>
          Effect.orDie(
            run.write(path, prettyJson(form === "own" ? fileOf(record, index) : originalFileOf(record)), {
              durable: false,
            }),
          )
        return Effect.as(write(begun), write)
      }),
  }
}
