/**
 * Writes and reads the samples of one step of a run: the folder `rollouts/step_N`, by which an orchestrator hands them to the
 * trainer. `samples.safetensors` holds the samples one after another in flat arrays, with the `offsets` at which each sample
 * begins and, where samples are compared in groups, the numbers of their `groups`; for router replay also `routed_experts`,
 * [tokens, layers, experts of a token], and the number of these tokens of each sample in `routed_tokens`. `batch.json` holds
 * their ids, and the digest of the arrays, by which damage is detected. `report.json` has the metrics of the sampling, and
 * transcripts.
 *
 * @example
 * ```ts
 * const folder = yield* openRunFolder({ id: "run_a", directory: "out/run_a" })
 * yield* writeRollouts(folder, { step: 3, samples })
 * const batch = yield* readRollouts(folder, 3)
 * ```
 */
import { Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { naturalInt, positiveInt } from "../../base/config/fields.ts"
import { sha256 } from "../../base/text/sha256.ts"
import { oneLine, prettyJson } from "../../base/text/text.ts"
import { attempt } from "../../base/config/attempt.ts"
import { utf8 } from "../../base/text/utf8.ts"
import * as Safetensors from "../../base/formats/safetensors.ts"
import * as Layout from "../Layout.ts"
import type { RunFolder, RunFolderError } from "../runs/guardedFolder.ts"
import { encodeStepReport, type StepReport } from "../records/reports.ts"
import { isStable, removeNewer, stepsIn, writeStep } from "../runs/stepFolders.ts"
import type { StepBatch } from "./Packer.ts"
import { expertsOf, expertTensors, unequalExperts } from "./expertTensors.ts"
import type { TrainingSample } from "./TrainingSample.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
import { TrainerError } from "../TrainerError.ts"

const { samples: samplesFile, batch: batchFile } = Layout.inRollouts

/** The content of `batch.json`. */
export const BatchDescription = Schema.Struct({
  step: naturalInt,
  /** The number of tokens of all samples. */
  tokens: positiveInt,
  /** The SHA-256 of the file with the arrays. */
  sha256: Schema.String,
  /** The ids of the samples in their order. */
  ids: Schema.NonEmptyArray(Schema.String),
})
const decodeDescription = Schema.decodeUnknownEffect(jsonText(BatchDescription))

interface Batch extends Pick<StepBatch, "step" | "samples"> {
  /** The metrics and transcripts of the sampling, for the run's logs. */
  readonly report?: StepReport
  /** The content of the critic's file, if the run has a critic. */
  readonly critic?: Uint8Array | undefined
}

/** The arrays that have a number for each token. */
const perToken = ["tokens", "mask", "logprobs", "advantages"] as const

/** Stands in the file for the group of a sample that has none. */
const ungrouped = -1

/** Makes the error of files that are damaged or missing: `run_a/rollouts/step_3: …`. */
const wrong = ({ directory }: RunFolder, step: number, problem: string): TrainerError =>
  new TrainerError({ reason: "rollouts", message: `${directory}/${Layout.rolloutsOf(step)}: ${problem}` })

/** Joins the samples to flat arrays, and encodes them. */
const encodeSamples = (samples: ReadonlyArray<TrainingSample>): Uint8Array => {
  const offsets = new Int32Array(samples.length + 1)
  for (const [at, { tokens }] of samples.entries()) offsets[at + 1] = offsets[at] + tokens.length
  const total = offsets[samples.length]
  const flat = {
    tokens: new Int32Array(total),
    mask: new Uint8Array(total),
    logprobs: new Float32Array(total),
    advantages: new Float32Array(total),
  }
  for (const [at, sample] of samples.entries()) for (const name of perToken) flat[name].set(sample[name], offsets[at])
  const temperatures = Float64Array.from(samples, ({ temperature }) => temperature)
  const isGrouped = samples.some(({ group }) => group !== undefined)
  const groups = isGrouped ? { groups: Int32Array.from(samples, ({ group = ungrouped }) => group) } : {}
  const arrays = Object.entries({ ...flat, offsets, temperatures, ...groups })
  return Safetensors.encode({
    ...Object.fromEntries(arrays.map(([name, data]) => [name, { shape: [data.length], data }])),
    ...expertTensors(samples),
  })
}

/** Returns a message if the arrays of a sample differ in length, because the file could not represent them. */
const unequal = (samples: ReadonlyArray<TrainingSample>): string | undefined => {
  for (const sample of samples) {
    for (const name of perToken) {
      const [expected, found] = [sample.tokens.length, sample[name].length]
      if (expected !== found) return `sample ${sample.id}: ${name}: expected ${expected} numbers, found ${found}`
    }
  }
  return unequalExperts(samples)
}

/**
 * Writes the samples of a step, as a whole or not at all. If the samples exist already, for example after a restart, the new
 * ones must be equal: the trainer may have trained on some of them.
 */
export const writeRollouts = Effect.fnUntraced(function* (
  folder: RunFolder,
  { step, samples, report, critic }: Batch,
): Effect.fn.Return<void, RunFolderError> {
  const problem = samples.length === 0 ? "expected at least one sample, found none" : unequal(samples)
  if (problem !== undefined) return yield* wrong(folder, step, problem)
  const bytes = encodeSamples(samples)
  const digest = yield* sha256(bytes)
  const tokens = samples.reduce((sum, sample) => sum + sample.tokens.length, 0)
  const description = { step, tokens, sha256: digest, ids: samples.map(({ id }) => id) }
  const text = prettyJson(description)
  const { tree, guarded } = folder
  yield* guarded(tree.repair(Layout.rollouts))
  if (yield* guarded(isStable(tree, Layout.rollouts, step))) {
    const before = yield* guarded(tree.readText(`${Layout.rolloutsOf(step)}/${batchFile}`))
    if (before === text) return
    return yield* wrong(folder, step, "expected the samples that were written before, found others for the same step")
  }
  const files = { [samplesFile]: bytes, [batchFile]: utf8.encode(text) }
  const reported: Record<string, Uint8Array> =
    report === undefined ? {} : { [Layout.inRollouts.report]: encodeStepReport(report) }
  const saved: Record<string, Uint8Array> = critic === undefined ? {} : { [Layout.inRollouts.critic]: critic }
  yield* guarded(writeStep(tree, Layout.rollouts, step, { ...files, ...reported, ...saved }))
})

/**
 * Tells whether the samples of a step can be read (`ready`) or are not written yet (`waiting`). Fails if a later step is
 * complete but this one does not exist, because then it will never be written.
 */
export const rolloutsState = Effect.fnUntraced(function* (
  { tree, ...folder }: RunFolder,
  step: number,
): Effect.fn.Return<"ready" | "waiting", RunFolderError> {
  if (yield* isStable(tree, Layout.rollouts, step)) return "ready"
  const later = (yield* stepsIn(tree, Layout.rollouts)).filter((other) => other > step)
  for (const other of later) {
    if (!(yield* isStable(tree, Layout.rollouts, other))) continue
    // Look again: the step may have become complete after the first look.
    if (yield* isStable(tree, Layout.rollouts, step)) return "ready"
    return yield* wrong({ tree, ...folder }, step, `expected this step's samples, found those of step ${other} only`)
  }
  return "waiting"
})

/** Removes the samples and the validations of all steps after `step`. */
export const removeAfter = Effect.fnUntraced(function* ({ tree, guarded }: RunFolder, step: number) {
  yield* guarded(removeNewer(tree, Layout.rollouts, step))
  for (const name of yield* guarded(tree.list(Layout.validations)))
    if ((Layout.validationStepOf(name) ?? step) > step) yield* guarded(tree.remove(`${Layout.validations}/${name}`))
})

/**
 * Prepares a run that begins at `step` after a resume from a checkpoint. If the samples of `step` were removed, because a
 * later checkpoint did not need them, also removes the samples of later steps: the orchestrator makes all of them again.
 */
export const removeUnreachable = Effect.fnUntraced(function* (
  folder: RunFolder,
  step: number,
): Effect.fn.Return<void, RunFolderError> {
  const { tree, guarded } = folder
  if (yield* guarded(isStable(tree, Layout.rollouts, step))) return
  if ((yield* guarded(stepsIn(tree, Layout.checkpoints))).length === 0) return
  yield* removeAfter(folder, step)
})

/** Reads the samples of a step. It does not check whether they fit the model; see `validate`. */
export const readRollouts = Effect.fnUntraced(function* (
  folder: RunFolder,
  step: number,
): Effect.fn.Return<StepBatch, RunFolderError> {
  const { tree } = folder
  const path = Layout.rolloutsOf(step)
  const damaged = (file: string, problem: string) => wrong(folder, step, `${file}: ${problem}`)
  for (const file of [batchFile, samplesFile]) {
    if (!(yield* tree.exists(`${path}/${file}`))) return yield* damaged(file, "the file is missing")
  }
  const description = yield* Effect.mapError(decodeDescription(yield* tree.readText(`${path}/${batchFile}`)), (error) =>
    damaged(batchFile, `expected a description of samples (${oneLine(error.message)})`),
  )
  if (description.step !== step) {
    return yield* damaged(batchFile, `expected the samples of step ${step}, found step ${description.step}`)
  }
  const bytes = yield* tree.read(`${path}/${samplesFile}`)
  if ((yield* sha256(bytes)) !== description.sha256) {
    return yield* damaged(samplesFile, `the content differs from the digest in ${batchFile}`)
  }
  const tensors = yield* Effect.mapError(
    attempt(() => Safetensors.decode(bytes), FormatError),
    (error) => damaged(samplesFile, error.message),
  )
  const samples = samplesOf(tensors, description)
  if (typeof samples === "string") return yield* damaged(samplesFile, samples)
  return { step, samples }
})

/** Returns the samples as views of the flat arrays, or a description of what is wrong with the arrays. */
const samplesOf = (
  tensors: Safetensors.TensorEntries,
  { ids, tokens: total }: typeof BatchDescription.Type,
): ReadonlyArray<TrainingSample> | string => {
  const missing = [...perToken, "offsets", "temperatures"].find((name) => !Object.hasOwn(tensors, name))
  if (missing !== undefined) return `expected an array "${missing}", found ${Object.keys(tensors).join(", ") || "none"}`
  const { tokens, mask, logprobs, advantages, offsets, temperatures } = tensors
  if (!(tokens.data instanceof Int32Array)) return "tokens: expected I32"
  if (!(mask.data instanceof Uint8Array)) return "mask: expected U8"
  if (!(logprobs.data instanceof Float32Array)) return "logprobs: expected F32"
  if (!(advantages.data instanceof Float32Array)) return "advantages: expected F32"
  if (!(offsets.data instanceof Int32Array)) return "offsets: expected I32"
  if (!(temperatures.data instanceof Float64Array)) return "temperatures: expected F64"
  const groups = Object.hasOwn(tensors, "groups") ? tensors["groups"].data : new Int32Array(ids.length).fill(ungrouped)
  if (!(groups instanceof Int32Array)) return "groups: expected I32"
  const lengths = { tokens: total, mask: total, logprobs: total, advantages: total }
  const perSample = Object.hasOwn(tensors, "groups") ? { groups: ids.length } : {}
  for (const [name, length] of Object.entries({
    ...lengths,
    ...perSample,
    offsets: ids.length + 1,
    temperatures: ids.length,
  })) {
    const found = tensors[name].data.length
    if (found !== length) return `${name}: expected ${length} numbers, found ${found}`
  }
  const bounds = offsets.data
  if (bounds[0] !== 0 || bounds[ids.length] !== total || bounds.some((bound, at) => at > 0 && bound < bounds[at - 1])) {
    return `offsets: expected ascending numbers from 0 to ${total}`
  }
  const [tokenData, maskData] = [tokens.data, mask.data]
  const [logprobData, advantageData, temperatureData] = [logprobs.data, advantages.data, temperatures.data]
  const experts = expertsOf(tensors, ids.length)
  if (typeof experts === "string") return experts
  return ids.map((id, at) => {
    const [from, to] = [bounds[at], bounds[at + 1]]
    return {
      id,
      tokens: tokenData.subarray(from, to),
      mask: maskData.subarray(from, to),
      logprobs: logprobData.subarray(from, to),
      advantages: advantageData.subarray(from, to),
      temperature: temperatureData[at],
      ...(groups[at] === ungrouped ? {} : { group: groups[at] }),
      ...(experts[at] === undefined ? {} : { routedExperts: experts[at] }),
    }
  })
}
