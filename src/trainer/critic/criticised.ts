/** Gives samples the advantages of a run's critic, and saves the critic with the samples of each step. */
import { Effect, type Scope } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
import * as Safetensors from "../../base/formats/safetensors.ts"
import { countedTokens } from "../../rl/losses/tokenWeights.ts"
import type { TrainingSample } from "../batches/TrainingSample.ts"
import * as Layout from "../Layout.ts"
import type { Usable } from "../orchestrator/advantages.ts"
import type { RunFolder, RunFolderError } from "../runs/guardedFolder.ts"
import type { FeatureReader } from "../teacher/compileScorer.ts"
import type { SampleReaders } from "../teacher/sampleReaders.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"
import { TrainerError } from "../TrainerError.ts"
import { type Chain, type CriticState, learned, makeCritic } from "./critic.ts"
import type { CriticConfig } from "./CriticConfig.ts"

/** The most numbers of features that are kept in memory. */
const mostNumbers = 2 ** 27

/** Opens the program that computes the features of contexts, by the run's own model. It works until the scope closes. */
export const openFeatures = (
  run: string,
  readers: SampleReaders | undefined,
): Effect.Effect<FeatureReader, { readonly message: string }, Scope.Scope> =>
  readers === undefined
    ? Effect.fail(
        TrainerError.at(
          run,
          "critic: expected none, as only a trainer with orchestrators: inside computes with the model itself",
        ),
      )
    : Effect.mapError(readers.features, ({ message }) => TrainerError.at(run, `critic: ${message}`))

interface Step {
  readonly run: string
  readonly step: number
  readonly config: CriticConfig
  readonly reader: FeatureReader
  readonly state: CriticState
  /** Whether advantages below 0 become 0. */
  readonly positiveOnly: boolean
  /** The newest weights of the run. With `max_async_level: 0`, they are those that sampled. */
  readonly own: OwnWeights | undefined
}

/** The samples with the critic's advantages, the critic, and the metrics of its learning. */
interface Criticised {
  readonly samples: ReadonlyArray<TrainingSample>
  readonly state: CriticState
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Returns the samples with the critic's advantages, and the critic after it has learned from them. The reward of an episode comes
 * after the last token of its last sample. The filters may have left out its last turns; then the episode counts up to there.
 */
export const criticised = Effect.fnUntraced(function* (
  samples: ReadonlyArray<TrainingSample>,
  usable: ReadonlyArray<Usable>,
  { run, step, config, reader, state, positiveOnly, own }: Step,
): Effect.fn.Return<Criticised, TrainerError> {
  const tokens = samples.reduce((sum, { mask }) => sum + countedTokens(mask), 0)
  if (tokens * reader.size > mostNumbers)
    return yield* TrainerError.at(
      run,
      `step ${step}: critic: expected at most ${Math.floor(mostNumbers / reader.size)} tokens that the model wrote, found ${tokens}; make batch.size smaller`,
    )
  const features = yield* Effect.mapError(reader.features(samples, own), ({ message }) =>
    TrainerError.at(run, `step ${step}: critic: ${message}`),
  )
  const kept = new Map(samples.map((sample) => [sample.id, sample]))
  const episodes = usable.flatMap((one) => {
    const turns = one.samples.flatMap(({ id }) => kept.get(id) ?? []).filter(({ mask }) => countedTokens(mask) > 0)
    const { totalReward: reward, ending } = one.rollout
    const isBootstrapped = ending.truncated && config.truncated === "bootstrap"
    return turns.length === 0 ? [] : [{ turns, reward, isBootstrapped }]
  })
  const chains = episodes.map(({ turns, reward, isBootstrapped }): Chain => {
    const parts = turns.map(({ id }) => features.get(id) ?? { before: new Float32Array(0), after: new Float32Array(0) })
    const length = turns.reduce((sum, { mask }) => sum + countedTokens(mask), 0)
    const chain = { features: joined(parts.map(({ before }) => before)), length, reward }
    const last = parts.at(-1)
    return isBootstrapped && last !== undefined ? { ...chain, after: last.after } : chain
  })
  const isFinite = ({ features: before, after = new Float32Array(0) }: Chain): boolean =>
    before.every(Number.isFinite) && after.every(Number.isFinite)
  if (!chains.every(isFinite))
    return yield* TrainerError.at(run, `step ${step}: critic: expected finite hidden states of the model`)
  if (chains.length === 0) return { samples, state, metrics: {} }
  const result = learned(state, chains, config)
  const advantages = new Map<string, Float32Array>()
  for (const [at, { turns }] of episodes.entries()) {
    let token = 0
    for (const { id, mask } of turns)
      advantages.set(
        id,
        Float32Array.from(mask, (counts) => {
          if (counts === 0) return 0
          const advantage = result.advantages[at][token++]
          return positiveOnly ? Math.max(0, advantage) : advantage
        }),
      )
  }
  return {
    samples: samples.map((sample) => ({ ...sample, advantages: advantages.get(sample.id) ?? sample.advantages })),
    state: result.state,
    metrics: {
      "sampling/value_loss": result.valueLoss,
      "sampling/explained_variance": result.explainedVariance,
    },
  }
})

const joined = (parts: ReadonlyArray<Float32Array>): Float32Array => {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Encodes a critic as the content of its file. */
export const encodeCritic = ({ weights, first, second, updates }: CriticState): Uint8Array =>
  Safetensors.encode(
    Object.fromEntries(
      Object.entries({ weights, first, second, updates: Float64Array.of(updates) }).map(([name, data]) => [
        name,
        { shape: [data.length], data },
      ]),
    ),
  )

/**
 * Reads the critic that a step left. Returns a new one, with a warning, if the step's samples were removed, as for a run that goes
 * back further than `rollouts.keep`.
 */
export const criticAfter = Effect.fnUntraced(function* (
  { tree, directory }: RunFolder,
  step: number,
  size: number,
): Effect.fn.Return<CriticState, RunFolderError> {
  const path = `${Layout.rolloutsOf(step)}/${Layout.inRollouts.critic}`
  if (!(yield* tree.exists(path))) {
    yield* Effect.logWarning(`${directory}/${path}: the file is missing, so the critic learns from the beginning`)
    return makeCritic(size)
  }
  const damaged = (problem: string) => TrainerError.at(`${directory}/${path}`, problem)
  const bytes = yield* tree.read(path)
  const tensors = yield* Effect.mapError(
    attempt(() => Safetensors.decode(bytes), FormatError),
    ({ message }) => damaged(message),
  )
  const numbers = (name: string, length: number): Float64Array | undefined => {
    const data = Object.hasOwn(tensors, name) ? tensors[name].data : undefined
    return data instanceof Float64Array && data.length === length && data.every(Number.isFinite) ? data : undefined
  }
  const [weights, first, second] = ["weights", "first", "second"].map((name) => numbers(name, size + 1))
  const updates = numbers("updates", 1)
  if (weights === undefined || first === undefined || second === undefined || updates === undefined)
    return yield* damaged(`expected the ${size + 1} weights of a critic with their moments`)
  return { weights, first, second, updates: updates[0] }
})
