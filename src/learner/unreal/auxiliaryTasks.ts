import { Effect } from "effect"
import { ConfigError } from "../../config/Config.ts"
import { fraction, nonNegative, positiveInt, withDefault } from "../../config/fields.ts"
import { sizeOf } from "../../env/Space.ts"
import { categorical } from "../../graph/distributions.ts"
import { linear } from "../../graph/layers.ts"
import {
  abs,
  add,
  concat,
  constant,
  div,
  max,
  maximum,
  mean,
  mul,
  neg,
  oneHot,
  reshape,
  slice,
  square,
  stopGradient,
  sub,
  sum,
} from "../../graph/ops.ts"
import { fail } from "../../graph/ops/core.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import { stream } from "../../rng/Rng.ts"
import type { Task } from "../Algorithm.ts"
import type { ActorCriticModel } from "../rollout/actorCriticModel.ts"
import type { Auxiliary } from "../rollout/Auxiliary.ts"
import type { Loss, Minibatch } from "../rollout/programs.ts"
import { floatsOf } from "../learnerState.ts"
import { tooLarge } from "../replay/storage.ts"
import { needsImagesAndChoices } from "../requirements.ts"
import { makeSequenceMemory, sequenceMemoryBytes } from "./SequenceMemory.ts"

/**
 * UNREAL's tasks (Jaderberg et al. 2016, arXiv:1611.05397), all of them learnt from a memory of the last steps: to change
 * the pixels (a value for each action and each cell of the image), to foresee the sign of the next reward, and to value
 * old sequences anew.
 */
export const auxiliaryFields = {
  /** The number of steps of each env that are kept for replay. */
  replaySize: withDefault(positiveInt, 2000),
  /** The number of steps of a replayed sequence; each update replays as many sequences as there are envs. */
  replaySteps: withDefault(positiveInt, 20),
  /** The width and height of a cell of the image whose change is to be controlled. */
  cell: withDefault(positiveInt, 4),
  /** The weight of the loss of pixel control, the values of changing cells. */
  pixelControlCoefficient: withDefault(nonNegative, 0.05),
  /** The discount factor of pixel control. */
  pixelControlGamma: withDefault(fraction, 0.9),
  /** The weight of the loss of predicting the sign of the next reward. */
  rewardPredictionCoefficient: withDefault(nonNegative, 1),
  /** The weight of the value loss of replayed sequences. */
  valueReplayCoefficient: withDefault(nonNegative, 0.5),
}

export interface AuxiliaryConfig {
  readonly gamma: number
  readonly replaySize: number
  readonly replaySteps: number
  readonly cell: number
  readonly pixelControlCoefficient: number
  readonly pixelControlGamma: number
  readonly rewardPredictionCoefficient: number
  readonly valueReplayCoefficient: number
}

const history = 3
const signs = 3

/** Steps of each env that must be there before anything can be drawn. */
const leastFilled = ({ replaySteps }: AuxiliaryConfig): number => Math.max(replaySteps, history) + 1

/** What the tasks need of an env and of their settings. */
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
  const problem = tooLarge(
    sequenceMemoryBytes({
      numEnvs: task.numEnvs,
      observationSize: sizeOf(task.observationSpace),
      actionSize: 1,
      capacity: config.replaySize,
    }),
  )
  if (problem !== undefined) {
    return yield* wrong("algorithm.replay_size", `${config.replaySize} steps of ${task.numEnvs} envs ${problem}`)
  }
  const [, height, width] = task.observationSpace.shape
  if (config.cell > Math.min(height, width)) {
    return yield* wrong("algorithm.cell", `expected at most the image's ${height} × ${width}, found ${config.cell}`)
  }
})

export const auxiliaryTasks = (config: AuxiliaryConfig, { network }: ActorCriticModel, task: Task): Auxiliary => {
  const { observationSpace, actionSpace, numEnvs } = task
  const { replaySteps: steps, cell } = config
  if (actionSpace._tag !== "Discrete") return fail("unreal", "the tasks need discrete actions")
  const [channels, height, width] = observationSpace.shape
  const [high, wide] = [Math.floor(height / cell), Math.floor(width / cell)]
  const cells = high * wide
  const size = sizeOf(observationSpace)
  const actions = actionSpace.n
  const sequences = numEnvs
  const advantages = linear("pixelControl.advantage", network.featureSize, actions * cells)
  const worth = linear("pixelControl.value", network.featureSize, cells)
  const foresight = linear("rewardPrediction", history * network.glanceSize, signs)

  /** How much each cell changes from one observation to the next: [sequences, steps, cells]. */
  const changes = (observations: Tensor): Tensor => {
    const frames = reshape(observations, [sequences, (steps + 1) * size])
    const moved = abs(
      sub(slice(frames, [0, size], [sequences, steps * size]), slice(frames, [0, 0], [sequences, steps * size])),
    )
    const whole = reshape(moved, [sequences * steps * channels, height, width])
    const even = slice(whole, [0, 0, 0], [sequences * steps * channels, high * cell, wide * cell])
    const grid = reshape(even, [sequences * steps, channels, high, cell, wide, cell])
    return reshape(mean(grid, [1, 3, 5]), [sequences, steps, cells])
  }

  /** Discounted sums from the last value backwards, cut where an episode ends: [sequences, steps, size]. */
  const returnsOf = (rewards: Tensor, continues: Tensor, last: Tensor, gamma: number): Tensor => {
    const breadth = last.shape[1]
    const at = (tensor: Tensor, step: number): Tensor => {
      const columns = tensor.shape[2]
      return reshape(slice(tensor, [0, step, 0], [sequences, 1, columns]), [sequences, columns])
    }
    const rows: Array<Tensor> = []
    let following = last
    for (let step = steps - 1; step >= 0; step--) {
      following = add(at(rewards, step), mul(mul(at(continues, step), following), gamma))
      rows.unshift(reshape(following, [sequences, 1, breadth]))
    }
    return stopGradient(concat(rows, 1))
  }

  const loss = ({ weights, given }: Minibatch): Loss => {
    const present = given("replay.present", [])
    const observations = given("replay.observations", [sequences * (steps + 1), size])
    const taken = given("replay.actions", [sequences * steps], "i32")
    const rewards = given("replay.rewards", [sequences, steps, 1])
    const continues = given("replay.continues", [sequences, steps, 1])
    const known = given("replay.known", [sequences, steps, 1])
    const fresh = given("replay.fresh", [sequences * (steps + 1)])
    const state = constant(new Float32Array(sequences * Math.max(1, network.memorySize)), [
      sequences,
      Math.max(1, network.memorySize),
    ])
    const features = network.features(weights, observations, network.memorySize > 0 ? { state, fresh } : undefined)
    const { value } = network.heads(weights, features)

    const split = (rows: Tensor): readonly [Tensor, Tensor] => {
      const columns = rows.shape.slice(1).reduce((product, length) => product * length, 1)
      const each = reshape(rows, [sequences, steps + 1, columns])
      return [
        slice(each, [0, 0, 0], [sequences, steps, columns]),
        reshape(slice(each, [0, steps, 0], [sequences, 1, columns]), [sequences, columns]),
      ]
    }
    const knownRows = maximum(sum(known), 1)
    const meanOfKnown = (errors: Tensor): Tensor => div(sum(mul(mean(errors, 2, { keepDims: true }), known)), knownRows)
    const [values, lastValue] = split(value)
    const valueAims = returnsOf(rewards, continues, stopGradient(lastValue), config.gamma)
    const valueLoss = meanOfKnown(square(sub(values, valueAims)))

    const preference = reshape(advantages.apply(weights, features.actor), [sequences * (steps + 1), actions, cells])
    const centre = mean(preference, 1, { keepDims: true })
    const base = reshape(worth.apply(weights, features.actor), [sequences * (steps + 1), 1, cells])
    const control = add(base, sub(preference, centre))
    const [controls, lastControl] = split(control)
    const best = max(reshape(lastControl, [sequences, actions, cells]), 1)
    // What "changes" where an episode ends is another episode's picture.
    const changed = mul(changes(observations), continues)
    const controlAims = returnsOf(changed, continues, stopGradient(best), config.pixelControlGamma)
    const chosen = sum(
      mul(
        reshape(controls, [sequences * steps, actions, cells]),
        reshape(oneHot(taken, actions), [sequences * steps, actions, 1]),
      ),
      1,
    )
    const controlLoss = meanOfKnown(square(sub(reshape(chosen, [sequences, steps, cells]), controlAims)))

    const frames = given("replay.frames", [sequences * history, size])
    const classes = given("replay.classes", [sequences], "i32")
    const seen = reshape(network.glance(weights, frames), [sequences, history * network.glanceSize])
    const predictionLoss = neg(mean(categorical(foresight.apply(weights, seen)).logProbability(classes)))

    const sumOfAll = add(
      add(mul(valueLoss, config.valueReplayCoefficient), mul(controlLoss, config.pixelControlCoefficient)),
      mul(predictionLoss, config.rewardPredictionCoefficient),
    )
    return {
      loss: mul(sumOfAll, present),
      metrics: {
        "losses/pixel_control": controlLoss,
        "losses/reward_prediction": predictionLoss,
        "losses/value_replay": valueLoss,
      },
    }
  }

  return {
    parameters: { ...advantages.parameters, ...worth.parameters, ...foresight.parameters },
    loss,
    start: ({ seed }, rollout) => {
      const memory = makeSequenceMemory({ numEnvs, observationSize: size, actionSize: 1, capacity: config.replaySize })
      return {
        remember: () => memory.remember(rollout),
        prepare: (iteration, feeds) => {
          const ready = memory.filled() >= leastFilled(config)
          feeds["replay.present"][0] = ready ? 1 : 0
          if (!ready) return
          const random = stream(seed, "replay", iteration)
          const taken = feeds["replay.actions"]
          const classes = feeds["replay.classes"]
          if (!(taken instanceof Int32Array) || !(classes instanceof Int32Array))
            throw new TypeError("choices are whole")
          memory.drawSequences(random, {
            count: sequences,
            steps,
            observations: floatsOf(feeds, "replay.observations"),
            actions: taken,
            rewards: floatsOf(feeds, "replay.rewards"),
            continues: floatsOf(feeds, "replay.continues"),
            known: floatsOf(feeds, "replay.known"),
            fresh: floatsOf(feeds, "replay.fresh"),
          })
          memory.drawRewards(random, {
            count: sequences,
            length: history,
            observations: floatsOf(feeds, "replay.frames"),
            classes,
          })
        },
        state: memory.state,
        restore: memory.restore,
      }
    },
  }
}
