/**
 * Converts rollouts to training samples, one for each turn, in which the model's calls are joined into one sequence of
 * tokens: the first prompt, its completion, the tokens that the second prompt adds, its completion, and so on. A mask
 * marks the tokens that the model wrote.
 *
 * The tokens come from the model's server or, if the server reports none, from a tokenizer. Only `read` reads files.
 *
 * @example
 * ```ts
 * const samples = yield* Samples.of(rollouts, { maxSeqLen: 4096, credit: Credit.episodic(Credit.parents) })
 * yield* fs.writeFileString("samples.jsonl", samples.map(Samples.line).join(""))
 * const read = yield* Stream.runCollect(Samples.read("samples.jsonl"))
 * ```
 */
import { Effect, type FileSystem, Schema, Stream } from "effect"
import type { FormatError } from "../../../base/formats/FormatError.ts"
import type { RoutedExperts } from "../../../base/formats/routedExperts.ts"
import { asMessage } from "../../lm/Chat.ts"
import { completionIds, type Encoder, promptIds } from "../../lm/ChatTokens.ts"
import { episodic, type StepCredit, turnsOf } from "./credit.ts"
import { addExperts, callExperts, lacksExperts, sampleExperts } from "./experts.ts"
import { linesOf, valueOf } from "../../../base/formats/jsonLines.ts"
import { type AgentStep, parseFailureOf, type Rollout, type RolloutStep } from "../Rollout.ts"
import { Sample, SampleError } from "./Sample.ts"

export { Sample, SampleError } from "./Sample.ts"

export interface SampleOptions {
  /** Tokenizes calls for which the server gave no tokens. */
  readonly tokenizer?: Encoder
  /** The number of tokens at which samples are cut off and marked as truncated; null (the default) sets no limit. */
  readonly maxSeqLen?: number | null
  /** Computes the credit of each step; by default, every step gets its rollout's own reward. */
  readonly credit?: StepCredit
  /** Returns the weight of a turn from its last step; 1 by default. Trainers multiply the credit by it. */
  readonly weight?: (step: RolloutStep, rollout: Rollout) => number
  /**
   * Chooses how a prompt is handled that does not begin with the turn's tokens so far: `fail` (the default) is an error, `split`
   * begins another sample.
   */
  readonly onBreak?: "fail" | "split"
  /** Whether to fail if a call has no log-probabilities. If false, `logprobs` is null in turns where no call has any. */
  readonly requireLogprobs?: boolean
}

/** The tokens of one call of the model. */
interface Tokens {
  readonly step: AgentStep
  readonly prompt: ReadonlyArray<number>
  readonly completion: ReadonlyArray<number>
  readonly logprobs: ReadonlyArray<number> | null
  readonly experts: RoutedExperts | null
}

/** The tokens of one sample, which grow as calls are joined. A turn becomes several of these only if it is split. */
interface GrowingSample {
  readonly ids: Array<number>
  readonly mask: Array<0 | 1>
  readonly logprobs: Array<number> | null
  /** The experts of the tokens, call by call. */
  readonly experts: Array<RoutedExperts>
  readonly steps: Array<AgentStep>
}

const wrong = ({ id }: Rollout, step: RolloutStep, reason: SampleError["reason"], problem: string) => {
  const message = `${step.turnId}: step ${step.id}: ${problem}`
  return Effect.fail(new SampleError({ rollout: id, turn: step.turnId, step: step.id, reason, message }))
}

/** Returns the tokens of a call, from the server or otherwise from the tokenizer. */
const tokensOf = (
  rollout: Rollout,
  step: AgentStep,
  { tokenizer, requireLogprobs = false }: SampleOptions,
): Effect.Effect<Tokens, SampleError> => {
  const { messages, tools = [], completion } = step.call
  const { tokens } = completion
  if (requireLogprobs && (tokens === null || tokens.logprobs === null)) {
    return wrong(rollout, step, "logprobs", "expected log-probabilities, found none")
  }
  if (tokens !== null) {
    const { promptIds: prompt, completionIds: ids, logprobs } = tokens
    if (logprobs !== null && logprobs.length !== ids.length) {
      const problem = `expected ${ids.length} log-probabilities, one for each token, found ${logprobs.length}`
      return wrong(rollout, step, "logprobs", problem)
    }
    const experts = callExperts(tokens)
    if (typeof experts === "string") return wrong(rollout, step, "routed_experts", experts)
    return Effect.succeed({ step, prompt, completion: ids, logprobs, experts })
  }
  if (tokenizer === undefined) {
    const problem = "the server gave no tokens; set traceTokens to ask for them, or pass a tokenizer"
    return wrong(rollout, step, "no_tokens", problem)
  }
  return Effect.succeed({
    step,
    prompt: promptIds(tokenizer, { messages, tools }),
    completion: completionIds(tokenizer, asMessage(completion), completion.finishReason !== "length"),
    logprobs: null,
    experts: null,
  })
}

/** Returns why a prompt does not begin with `ids` (the turn's tokens so far); undefined if it does. */
const breakOf = (ids: ReadonlyArray<number>, prompt: ReadonlyArray<number>): string | undefined => {
  const at = ids.findIndex((id, index) => index < prompt.length && id !== prompt[index])
  if (at >= 0) return `its prompt differs at token ${at} from the earlier tokens of the turn`
  return prompt.length < ids.length
    ? `its prompt has ${prompt.length} tokens, fewer than the ${ids.length} earlier tokens of the turn`
    : undefined
}

/** Appends tokens to a part; `mask` is 1 if the model wrote them. */
const append = (
  part: GrowingSample,
  ids: ReadonlyArray<number>,
  mask: 0 | 1,
  logprobs: ReadonlyArray<number> | null,
): void => {
  for (let at = 0; at < ids.length; at++) {
    part.ids.push(ids[at])
    part.mask.push(mask)
    part.logprobs?.push(logprobs?.[at] ?? 0)
  }
}

/** Joins the calls of a turn into one part; with `onBreak: "split"`, a prompt that does not fit begins another part. */
const partsOf = (
  rollout: Rollout,
  calls: ReadonlyArray<Tokens>,
  { onBreak = "fail" }: SampleOptions,
): Effect.Effect<ReadonlyArray<GrowingSample>, SampleError> => {
  const parts: Array<GrowingSample> = []
  const withLogprobs = calls.filter(({ logprobs }) => logprobs !== null)
  if (withLogprobs.length > 0 && withLogprobs.length < calls.length) {
    const step = calls.find(({ logprobs }) => logprobs === null)?.step ?? calls[0].step
    const problem = `it has no log-probabilities, but ${withLogprobs.length} of the turn's ${calls.length} calls have them`
    return wrong(rollout, step, "logprobs", problem)
  }
  const lacking = lacksExperts(calls)
  if (lacking !== undefined) return wrong(rollout, lacking.step, "routed_experts", lacking.problem)
  for (const { step, prompt, completion, logprobs, experts } of calls) {
    let part = parts.at(-1)
    const problem = part === undefined ? undefined : breakOf(part.ids, prompt)
    if (problem !== undefined && onBreak === "fail") {
      return wrong(rollout, step, "not_append_only", problem)
    }
    if (part === undefined || problem !== undefined) {
      part = { ids: [], mask: [], logprobs: logprobs === null ? null : [], experts: [], steps: [] }
      parts.push(part)
    }
    append(part, prompt.slice(part.ids.length), 0, null)
    append(part, completion, 1, logprobs)
    addExperts(part.experts, experts)
    part.steps.push(step)
  }
  return Effect.succeed(parts)
}

const finite = (
  rollout: Rollout,
  step: RolloutStep,
  name: string,
  value: number | undefined,
): Effect.Effect<number, SampleError> =>
  value !== undefined && Number.isFinite(value)
    ? Effect.succeed(value)
    : wrong(rollout, step, "not_finite", `${name}: expected a finite number, found ${value ?? "none"}`)

const sampleOf = (
  rollout: Rollout,
  turn: ReadonlyArray<RolloutStep>,
  part: GrowingSample,
  name: string,
  { maxSeqLen = null }: SampleOptions,
): Omit<Sample, "credit" | "weight"> => {
  const { id, meta, ending } = rollout
  const last = turn[turn.length - 1]
  const lastCall = part.steps[part.steps.length - 1]
  const length = part.ids.length
  const retained = maxSeqLen === null ? length : Math.min(length, maxSeqLen)
  const isCut = retained < length
  const experts = sampleExperts(part.experts, retained)
  return {
    id: name,
    rolloutId: id,
    turnId: last.turnId,
    groupId: meta.groupId,
    parentRolloutId: meta.parentRolloutId,
    depth: meta.depth,
    player: meta.player,
    purpose: lastCall.call.purpose,
    inputIds: part.ids.slice(0, retained),
    actionMask: part.mask.slice(0, retained),
    logprobs: part.logprobs?.slice(0, retained) ?? null,
    ...(experts === undefined ? {} : { routedExperts: experts }),
    stepIndices: part.steps.map(({ index }) => index),
    stepIds: part.steps.map(({ id }) => id),
    actionTargets: part.steps.map(({ call }) => call.target),
    hasEnvStep: last._tag === "EnvironmentStep",
    parseFailed: parseFailureOf(lastCall) !== null,
    incomplete: part.steps.some(({ call }) => call.completion.finishReason === "length"),
    reward: last.reward,
    terminated: last.terminated,
    truncated: last.truncated || isCut,
    episodeTerminated: ending.terminated,
    episodeTruncated: ending.truncated,
    truncationReason: ending.truncationReason ?? (isCut ? "max_seq_len" : null),
    seqLenTruncated: isCut,
    seqLenOriginal: length,
    seqLenRetained: retained,
    tags: meta.tags,
  }
}

/** Makes a sample of each turn that has calls of the model (several if it is split), in the order of the turns. */
export const of = Effect.fnUntraced(function* (
  rollouts: ReadonlyArray<Rollout>,
  options: SampleOptions = {},
): Effect.fn.Return<ReadonlyArray<Sample>, SampleError> {
  const { maxSeqLen = null } = options
  if (maxSeqLen !== null && !(Number.isInteger(maxSeqLen) && maxSeqLen >= 1)) {
    return yield* Effect.die(new RangeError(`maxSeqLen: expected a whole number of at least 1, found ${maxSeqLen}`))
  }
  const credits = (options.credit ?? episodic())(rollouts)
  const samples: Array<Sample> = []
  for (const rollout of rollouts) {
    for (const turn of turnsOf(rollout)) {
      const steps = turn.filter((step) => step._tag === "AgentStep")
      if (steps.length === 0) continue
      const last = turn[turn.length - 1]
      const credit = yield* finite(rollout, last, "credit", credits.get(last.id))
      const weight = yield* finite(rollout, last, "weight", options.weight?.(last, rollout) ?? 1)
      const calls = yield* Effect.forEach(steps, (step) => tokensOf(rollout, step, options))
      const parts = yield* partsOf(rollout, calls, options)
      for (const [at, part] of parts.entries()) {
        const name = parts.length === 1 ? last.turnId : `${last.turnId}#${at + 1}`
        samples.push({ ...sampleOf(rollout, turn, part, name, options), credit, weight })
      }
    }
  }
  return samples
})

/**
 * Returns the path at which to save the samples of a file of rollouts, in the same folder. The dashboard's page of a
 * run looks for them there, and colours the model's texts by their credit.
 *
 * @example
 * ```ts
 * Samples.pathFor("rollouts/train/rollouts.jsonl") // "rollouts/train/samples.jsonl"
 * Samples.pathFor("rollouts/val/50_seen_episodes_rollouts.jsonl") // "rollouts/val/50_seen_episodes_samples.jsonl"
 * ```
 */
export const pathFor = (rollouts: string): string => rollouts.replace(/(?:rollouts|outcomes)(?=\.jsonl$)/, "samples")

const encode = Schema.encodeSync(Sample)

/** Encodes a sample as a line with its line feed. */
export const line = (sample: Sample): string => `${JSON.stringify(encode(sample))}\n`

const decode = valueOf(Sample)

/** Reads the samples of a file, in order. An invalid line is an error that names the line and the problem. */
export const read = (path: string): Stream.Stream<Sample, FormatError, FileSystem.FileSystem> =>
  Stream.mapEffect(linesOf(path), (line) => decode(path, line))
