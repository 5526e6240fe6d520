/**
 * Defines the samples that a trainer of several runs learns from, and checks them. A sample is a sequence of tokens, a mask
 * of those to learn from, and for each token the log-probability that the sampling model gave it and its advantage. If a
 * sample breaks a rule, its run is evicted with an error; no sample is cut or left out silently.
 *
 * @example
 * ```ts
 * const samples = yield* Samples.of(rollouts)
 * const trained = yield* Effect.forEach(samples, (sample) => fromSample(sample, { run: "run_a", step: 3, temperature: 1 }))
 * yield* validate(trained, { vocabSize: 32_000, width: 4096 }, { run: "run_a", step: 3 })
 * ```
 */
import { Effect } from "effect"
import type { Sample } from "../../agents/episode/samples/Sample.ts"
import { shortened } from "../../base/text/text.ts"
import { decodeExperts, type RoutedExperts } from "../../base/formats/routedExperts.ts"
import { TrainerError } from "../TrainerError.ts"
import { expertsProblem, type ReplayedExperts } from "./routerReplay.ts"

/** A sequence of tokens to learn from. All four arrays have the same length. */
export interface TrainingSample {
  /** The name of the sample, which no other sample of the same step has. */
  readonly id: string
  readonly tokens: Int32Array
  /**
   * Whether each token was written by the model and is learned from: 1 if so, 0 if not. The first token has 0, because no
   * token before it predicts it.
   */
  readonly mask: Uint8Array
  /** The log-probability of each token under the model that wrote it; 0 where the mask is 0. */
  readonly logprobs: Float32Array
  readonly advantages: Float32Array
  /** The temperature at which the tokens were sampled. */
  readonly temperature: number
  /**
   * The number of the sample's group in its step, a whole number from 0: the samples of one prompt. A sample without it is a
   * group of its own. Only the normalisation `group_mean` depends on it.
   */
  readonly group?: number
  /**
   * The experts that the sampling model chose for the tokens, or for all except the last one. Without them, the routers of the
   * trained model choose.
   */
  readonly routedExperts?: RoutedExperts
}

/** The run and the step of a sample, for messages. */
export interface SamplePlace {
  readonly run: string
  readonly step: number
}

/** The limits of a trainer that every sample must meet. */
export interface SampleLimits {
  /** The number of tokens in the model's vocabulary. */
  readonly vocabSize: number
  /** The largest number of tokens of a sample: the width of a window. */
  readonly width: number
  /** The sizes of the model's experts, if its routers are replayed. Otherwise the experts of samples are not used. */
  readonly replayed?: ReplayedExperts | undefined
}

interface Problem {
  readonly key: string
  readonly expected: string
  readonly found: string
}

/** Makes the error of a sample that cannot be trained on: `run_a: step 3: sample s1: tokens[7]: expected …`. */
const invalid = ({ run, step }: SamplePlace, sample: string, problem: Problem): TrainerError => {
  const { key, expected, found } = problem
  return TrainerError.at(run, `step ${step}: sample ${shortened(sample)}: ${key}: expected ${expected}, found ${found}`)
}

const finiteNumber = "a finite number"

const tooLong = (length: number, width: number): Problem | undefined =>
  length > width ? { key: "tokens", expected: `at most ${width} tokens`, found: `${length}` } : undefined

/** Fails if a sample has more tokens than a window. */
export const refuseTooLong = (
  { id, tokens }: Pick<TrainingSample, "id" | "tokens">,
  width: number,
  place: SamplePlace,
): Effect.Effect<void, TrainerError> => {
  const problem = tooLong(tokens.length, width)
  return problem === undefined ? Effect.void : Effect.fail(invalid(place, id, problem))
}

/** Returns the first rule that a sample breaks; undefined if it breaks none. */
export const problemOf = (
  sample: TrainingSample,
  { vocabSize, width, replayed }: SampleLimits,
): Problem | undefined => {
  const { tokens, mask, logprobs, advantages, temperature, group, routedExperts } = sample
  const { length } = tokens
  if (length === 0) return { key: "tokens", expected: "at least one token", found: "none" }
  const long = tooLong(length, width)
  if (long !== undefined) return long
  for (const [key, array] of [
    ["mask", mask],
    ["logprobs", logprobs],
    ["advantages", advantages],
  ] as const) {
    if (array.length !== length) {
      return { key, expected: `${length} numbers, one for each token`, found: `${array.length}` }
    }
  }
  for (let at = 0; at < length; at++) {
    if (tokens[at] < 0 || tokens[at] >= vocabSize) {
      return { key: `tokens[${at}]`, expected: `a token id from 0 to ${vocabSize - 1}`, found: `${tokens[at]}` }
    }
    if (mask[at] > 1) return { key: `mask[${at}]`, expected: "0 or 1", found: `${mask[at]}` }
    if (!Number.isFinite(logprobs[at])) {
      return { key: `logprobs[${at}]`, expected: finiteNumber, found: `${logprobs[at]}` }
    }
    if (!Number.isFinite(advantages[at])) {
      return { key: `advantages[${at}]`, expected: finiteNumber, found: `${advantages[at]}` }
    }
  }
  if (routedExperts !== undefined && replayed !== undefined) {
    const problem = expertsProblem(routedExperts, length, replayed)
    if (problem !== undefined) return problem
  }
  if (group !== undefined && !(Number.isInteger(group) && group >= 0)) {
    return { key: "group", expected: "a whole number from 0", found: `${group}` }
  }
  if (mask[0] !== 0) {
    return { key: "mask[0]", expected: "0, because no token precedes the first one and predicts it", found: "1" }
  }
  return Number.isFinite(temperature) && temperature > 0
    ? undefined
    : { key: "temperature", expected: "a finite number above 0", found: `${temperature}` }
}

/** Checks the samples of one step of a run. Fails at the first sample that breaks a rule or has the id of an earlier one. */
export const validate = (
  samples: ReadonlyArray<TrainingSample>,
  limits: SampleLimits,
  place: SamplePlace,
): Effect.Effect<void, TrainerError> =>
  Effect.suspend(() => {
    const ids = new Set<string>()
    for (const sample of samples) {
      const problem = ids.has(sample.id)
        ? {
            key: "id",
            expected: "an id that no other sample of the step has",
            found: `"${shortened(sample.id)}" twice`,
          }
        : problemOf(sample, limits)
      if (problem !== undefined) return Effect.fail(invalid(place, sample.id, problem))
      ids.add(sample.id)
    }
    return Effect.void
  })

export interface ConversionOptions extends SamplePlace {
  /** The temperature at which the completions were sampled. */
  readonly temperature: number
  /**
   * Chooses how a sample without log-probabilities is handled: `required` (the default) fails, `unused` gives it zeros, for
   * losses that do not use them, such as the one of supervised fine-tuning.
   */
  readonly logprobs?: "required" | "unused"
  /** Whether a sample without the experts of its tokens fails, because they are replayed. By default it does not. */
  readonly needsExperts?: boolean
}

/**
 * Converts a sample of `Samples.of`. If it has no `advantages` of its own, each token that the model wrote gets the advantage
 * `credit` times `weight`. Fails for numbers that the arrays of a `TrainingSample` cannot hold.
 */
export const fromSample = (sample: Sample, options: ConversionOptions): Effect.Effect<TrainingSample, TrainerError> =>
  Effect.suspend(() => {
    const { id, inputIds, actionMask, logprobs, credit, weight } = sample
    const experts = sample.routedExperts && decodeExperts(sample.routedExperts)
    const fail = (key: string, expected: string, found: string) =>
      Effect.fail(invalid(options, id, { key, expected, found }))
    if (logprobs === null && options.logprobs !== "unused") {
      return fail("logprobs", "a log-probability for each token", "none")
    }
    if (typeof experts === "string") return fail("routed_experts", "a record of experts", experts)
    if (experts === undefined && options.needsExperts === true)
      return fail("routed_experts", "the experts of each token, which trainer.enable_router_replay needs", "none")
    // An Int32Array would turn such a number into another token.
    const wrong = inputIds.findIndex((token) => !Number.isInteger(token) || token < 0 || token > 0x7fffffff)
    if (wrong >= 0) return fail(`tokens[${wrong}]`, "a token id", `${inputIds[wrong]}`)
    const advantages = sample.advantages ?? actionMask.map((mask) => mask * credit * weight)
    return Effect.succeed({
      id,
      tokens: Int32Array.from(inputIds),
      mask: Uint8Array.from(actionMask),
      logprobs: logprobs === null ? new Float32Array(inputIds.length) : Float32Array.from(logprobs),
      advantages: Float32Array.from(advantages),
      temperature: options.temperature,
      ...(experts === undefined ? {} : { routedExperts: experts }),
    })
  })
