/**
 * Defines the auxiliary tasks of UNREAL and RANDAL: their settings, and the loss that these algorithms add to their
 * own.
 */
import { Effect, type Schema } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, fraction, nonNegative, withDefault } from "../../../base/config/fields.ts"
import { type RowSpace, sizeOf } from "../../env/Space.ts"
import { categorical, withoutForbidden } from "../../../tensor/graph/distributions.ts"
import { type GraphLayer, linear } from "../../../tensor/graph/layers.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import { fail } from "../../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Task } from "../Learner.ts"
import type { ActorCritic } from "../../model/ActorCritic.ts"
import { imageShapeOf, maskOf, withoutMask } from "../../model/observations.ts"
import type { Weights } from "../../model/trunk.ts"
import { type Batch, feedsOf } from "../Batch.ts"
import type { Loss } from "../graphs.ts"
import type { Auxiliary } from "../rollout/features.ts"
import type { BaseColumns } from "../rollout/RolloutData.ts"
import { tooLarge } from "../replay/storage.ts"
import { needsImagesAndChoices } from "../requirements.ts"
import * as Memory from "./SequenceMemory.ts"

const { abs, add, broadcastTo, concat, constant, div, max, maximum, mean, mul, neg, oneHot } = Graph
const { reshape, slice, square, stopGradient, sub, sum } = Graph

/**
 * The settings of UNREAL's auxiliary tasks (Jaderberg et al. 2016, arXiv:1611.05397). From a memory of the last steps,
 * the network learns three tasks: pixel control (how much each action can change each cell of the image), the sign of
 * the next reward, and once more the values of earlier steps.
 */
export interface AuxiliaryOptions {
  /** The number of steps of each env that are kept for replay. @default 2000 */
  readonly replaySize?: number
  /** The number of steps of a replayed sequence; each update replays as many sequences as there are envs. @default 20 */
  readonly replaySteps?: number
  /** The width and height, in pixels, of the cells of the image that pixel control learns to change. @default 4 */
  readonly cell?: number
  /** The weight of the loss of pixel control. @default 0.05 */
  readonly pixelControlCoefficient?: number
  /** The discount factor of pixel control. @default 0.9 */
  readonly pixelControlGamma?: number
  /** The weight of the loss of predicting the sign of the next reward. @default 1 */
  readonly rewardPredictionCoefficient?: number
  /** The weight of the value loss of replayed sequences. @default 0.5 */
  readonly valueReplayCoefficient?: number
}

export const auxiliaryFields = {
  replaySize: withDefault(bounded("transitions"), 2000),
  replaySteps: withDefault(bounded("rolloutSteps"), 20),
  cell: withDefault(bounded("cellSize"), 4),
  pixelControlCoefficient: withDefault(nonNegative, 0.05),
  pixelControlGamma: withDefault(fraction, 0.9),
  rewardPredictionCoefficient: withDefault(nonNegative, 1),
  valueReplayCoefficient: withDefault(nonNegative, 0.5),
}

type AuxiliaryConfig = Schema.Struct.Type<typeof auxiliaryFields> & { readonly gamma: number }

/** The number of classes of a reward: none, positive and negative. */
const signs = 3

/** Returns the number of steps of each env that the memory must hold before anything can be drawn. */
const leastFilled = ({ replaySteps }: AuxiliaryConfig): number => Math.max(replaySteps, Memory.history) + 1

/** Fails if the tasks cannot be learned in this env or with these settings. */
export const checkTasks = Effect.fnUntraced(function* (
  name: string,
  config: AuxiliaryConfig,
  task: Task,
): Effect.fn.Return<void, ConfigError> {
  yield* needsImagesAndChoices(name, task)
  const wrong = (key: string, problem: string): ConfigError => ConfigError.at({ source: name }, key, problem)
  // A memory that can never hold a sequence would silently leave all tasks out.
  const least = leastFilled(config)
  if (config.replaySize < least) {
    const expected = `expected at least ${least}, for sequences of ${config.replaySteps} steps, found ${config.replaySize}`
    return yield* wrong("algorithm.replay_size", expected)
  }
  const problem = tooLarge(Memory.sequenceMemoryBytes(config.replaySize, task.numEnvs, sizeOf(task.observationSpace)))
  if (problem !== undefined) {
    return yield* wrong("algorithm.replay_size", `${config.replaySize} steps of ${task.numEnvs} envs ${problem}`)
  }
  const [, height, width] = imageShapeOf(task.observationSpace) ?? []
  if (config.cell > Math.min(height, width)) {
    return yield* wrong("algorithm.cell", `expected at most the image's ${height} × ${width}, found ${config.cell}`)
  }
})

type AuxiliaryNetwork = Pick<ActorCritic, "evaluate" | "featureSize" | "memorySize" | "trunk">

/** The tasks for a network, with the loss that an algorithm adds to its own. */
interface AuxiliaryTasks extends Auxiliary<BaseColumns, Memory.ReplayColumns> {
  readonly loss: (minibatch: { readonly weights: Weights; readonly batch: Batch<Memory.ReplayColumns> }) => Loss
}

/** The sizes of the replayed data, and the networks' heads for the tasks. */
interface Replayed {
  readonly config: AuxiliaryConfig
  readonly network: AuxiliaryNetwork
  readonly observationSpace: RowSpace
  readonly actions: number
  /** The number of sequences, and of steps of each. */
  readonly sequences: number
  readonly steps: number
  readonly image: ReadonlyArray<number>
  /** The numbers of cells in a column and in a row of the image; pixels at its edge that fill no whole cell are ignored. */
  readonly high: number
  readonly wide: number
  readonly advantageHead: GraphLayer
  readonly valueHead: GraphLayer
  readonly rewardHead: GraphLayer
}

const replayedOf = (config: AuxiliaryConfig, network: AuxiliaryNetwork, task: Task): Replayed => {
  const { observationSpace, actionSpace, numEnvs } = task
  const { replaySteps: steps, cell } = config
  if (actionSpace._tag !== "Discrete") return fail("unreal", "the tasks need discrete actions")
  const image = imageShapeOf(observationSpace) ?? fail("unreal", "the tasks need images")
  const [, height, width] = image
  const [high, wide] = [Math.floor(height / cell), Math.floor(width / cell)]
  const actions = actionSpace.n
  const { featureSize, trunk } = network
  return {
    config,
    network,
    observationSpace,
    actions,
    sequences: numEnvs,
    steps,
    image,
    high,
    wide,
    advantageHead: linear("pixelControl.advantage", featureSize, actions * high * wide),
    valueHead: linear("pixelControl.value", featureSize, high * wide),
    rewardHead: linear("rewardPrediction", Memory.history * trunk.outputs, signs),
  }
}

/** Makes the tasks of a network: their parameters, columns, loss, and memory of past steps. */
export const auxiliaryTasks = (config: AuxiliaryConfig, network: AuxiliaryNetwork, task: Task): AuxiliaryTasks => {
  const { numEnvs } = task
  const replayed = replayedOf(config, network, task)
  const { sequences, steps, advantageHead, valueHead, rewardHead } = replayed
  const size = sizeOf(task.observationSpace)
  const columns = Memory.replayColumns(sequences, steps, size)
  return {
    parameters: { ...advantageHead.parameters, ...valueHead.parameters, ...rewardHead.parameters },
    columns,
    loss: (minibatch) => lossOf(replayed, minibatch),
    start: ({ task: { seed }, rollout }) => {
      const capacity = config.replaySize
      const memory = Memory.makeSequenceMemory({ numEnvs, observationSize: size, capacity, sequences, steps })
      return {
        remember: () => memory.remember(rollout),
        prepare: (iteration, programFeeds) => {
          const feeds = feedsOf(columns, programFeeds)
          const ready = memory.filled() >= leastFilled(config)
          feeds.replayReady[0] = ready ? 1 : 0
          if (!ready) return
          const random = stream(seed, "replay", iteration)
          memory.drawSequences(random, feeds)
          memory.drawRewards(random, feeds)
        },
        state: memory.state,
        restore: memory.restore,
      }
    },
  }
}

/** The rows that the tasks learn from. */
type ReplayedRows = Parameters<AuxiliaryTasks["loss"]>[0]

/** Adds up the losses of the three tasks. */
const lossOf = (replayed: Replayed, { weights, batch }: ReplayedRows): Loss => {
  const { config, network, sequences, observationSpace } = replayed
  const { memorySize } = network
  // A column that is read becomes an input of the program. The memory of past steps fills all of them.
  const { replayRewards, replayContinues, replayKnown, replayFresh } = batch
  const memory = () => constant(new Float32Array(sequences * memorySize), [sequences, memorySize])
  const recall = memorySize > 0 ? { state: memory(), fresh: replayFresh } : undefined
  const { value, actor } = network.evaluate(weights, batch.replayObservations, recall)
  const allowed = maskOf(observationSpace, batch.replayObservations)
  const knownRows = maximum(sum(replayKnown), 1)
  /** Computes the mean of errors over the steps whose returns are known. */
  const meanOfKnown = (errors: Tensor): Tensor =>
    div(sum(mul(mean(errors, 2, { keepDims: true }), replayKnown)), knownRows)
  const valueReplayLoss = meanOfKnown(valueErrors(replayed, { replayRewards, replayContinues }, value))
  const pixelControlLoss = meanOfKnown(controlErrors(replayed, { weights, batch }, actor, allowed))
  const rewardPredictionLoss = rewardPrediction(replayed, { weights, batch })
  const { valueReplayCoefficient, pixelControlCoefficient, rewardPredictionCoefficient } = config
  const both = add(mul(valueReplayLoss, valueReplayCoefficient), mul(pixelControlLoss, pixelControlCoefficient))
  const weighted = add(both, mul(rewardPredictionLoss, rewardPredictionCoefficient))
  return {
    loss: mul(weighted, batch.replayReady),
    metrics: {
      "losses/pixel_control": pixelControlLoss,
      "losses/reward_prediction": rewardPredictionLoss,
      "losses/value_replay": valueReplayLoss,
    },
  }
}

/** Computes the errors of value replay: (V(s) − G)² of each replayed step. */
const valueErrors = (
  replayed: Replayed,
  batch: Pick<ReplayedRows["batch"], "replayRewards" | "replayContinues">,
  value: Tensor,
): Tensor => {
  const [values, lastValue] = split(replayed, value)
  const targets = returnsOf(replayed, batch, batch.replayRewards, stopGradient(lastValue), replayed.config.gamma)
  return square(sub(values, targets))
}

/** Computes the errors of pixel control: n-step Q-learning for each cell with a dueling head, where its change is the reward. */
const controlErrors = (
  replayed: Replayed,
  { weights, batch }: ReplayedRows,
  actor: Tensor,
  allowed: Tensor | undefined,
): Tensor => {
  const { config, actions, sequences, steps, high, wide, advantageHead, valueHead } = replayed
  const cells = high * wide
  const advantages = reshape(advantageHead.apply(weights, actor), [sequences * (steps + 1), actions, cells])
  const centre = mean(advantages, 1, { keepDims: true })
  const cellValues = reshape(valueHead.apply(weights, actor), [sequences * (steps + 1), 1, cells])
  const [controls, lastControl] = split(replayed, add(cellValues, sub(advantages, centre)))
  const lastAllowed = allowed === undefined ? undefined : split(replayed, allowed)[1]
  const lastControls = reshape(lastControl, [sequences, actions, cells])
  const best = max(withoutForbidden(lastControls, lastAllowed && eachCell(replayed, lastAllowed)), 1)
  // Where an episode ends, the next observation belongs to another episode, so the change is no reward.
  const rewards = mul(changesOf(replayed, batch.replayObservations), batch.replayContinues)
  const targets = returnsOf(replayed, batch, rewards, stopGradient(best), config.pixelControlGamma)
  const taken = reshape(oneHot(batch.replayActions, actions), [sequences * steps, actions, 1])
  const chosen = sum(mul(reshape(controls, [sequences * steps, actions, cells]), taken), 1)
  return square(sub(reshape(chosen, [sequences, steps, cells]), targets))
}

/** Computes the loss of reward prediction: the cross-entropy of the sign of the reward that follows a history. */
const rewardPrediction = ({ network, sequences, rewardHead }: Replayed, { weights, batch }: ReplayedRows): Tensor => {
  const { trunk } = network
  const histories = reshape(trunk.apply(weights, batch.replayHistories), [sequences, Memory.history * trunk.outputs])
  const predicted = categorical(rewardHead.apply(weights, histories))
  return neg(mean(predicted.logProbability(batch.replayClasses)))
}

/** Computes each cell's mean absolute change from one observation to the next, of shape [sequences, steps, cells]. */
const changesOf = (replayed: Replayed, observations: Tensor): Tensor => {
  const { config, observationSpace, sequences, steps, image, high, wide } = replayed
  const { cell } = config
  const [channels, height, width] = image
  const pixels = channels * height * width
  // An action mask may follow the image.
  const images = withoutMask(observationSpace, observations)
  const frames = reshape(images, [sequences, (steps + 1) * pixels])
  const [before, after] = [0, pixels].map((from) => slice(frames, [0, from], [sequences, steps * pixels]))
  const changed = abs(sub(after, before))
  const planes = reshape(changed, [sequences * steps * channels, height, width])
  const covered = slice(planes, [0, 0, 0], [sequences * steps * channels, high * cell, wide * cell])
  const grid = reshape(covered, [sequences * steps, channels, high, cell, wide, cell])
  return reshape(mean(grid, [1, 3, 5]), [sequences, steps, high * wide])
}

/**
 * Computes the return of each step: the discounted rewards until the episode ends, or until the last step, which the
 * value `last` follows.
 */
const returnsOf = (
  { sequences, steps }: Replayed,
  { replayContinues }: Pick<ReplayedRows["batch"], "replayContinues">,
  rewards: Tensor,
  last: Tensor,
  gamma: number,
): Tensor => {
  const [, size] = last.shape
  const at = (tensor: Tensor, step: number): Tensor => {
    const [, , columns] = tensor.shape
    return reshape(slice(tensor, [0, step, 0], [sequences, 1, columns]), [sequences, columns])
  }
  const rows: Array<Tensor> = []
  let next = last
  for (let step = steps - 1; step >= 0; step--) {
    next = add(at(rewards, step), mul(mul(at(replayContinues, step), next), gamma))
    rows.unshift(reshape(next, [sequences, 1, size]))
  }
  return stopGradient(concat(rows, 1))
}

/** Splits off each sequence's last row: returns the others, [sequences, steps, …], and the last, [sequences, …]. */
const split = ({ sequences, steps }: Replayed, rows: Tensor): readonly [Tensor, Tensor] => {
  const columns = rows.shape.slice(1).reduce((product, length) => product * length, 1)
  const each = reshape(rows, [sequences, steps + 1, columns])
  const [before, last] = Graph.split(each, [steps, 1], 1)
  return [before, reshape(last, [sequences, columns])]
}

/** Repeats a mask of actions for each cell. */
const eachCell = ({ sequences, actions, high, wide }: Replayed, allowed: Tensor): Tensor =>
  broadcastTo(reshape(allowed, [sequences, actions, 1]), [sequences, actions, high * wide])
