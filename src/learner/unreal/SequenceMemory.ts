import type { Stream } from "../../rng/Rng.ts"
import type { NamedArrays } from "../Algorithm.ts"
import { copyInto, namedVector } from "../learnerState.ts"
import { type Filled, filledPart, restoreFilled } from "../replay/storage.ts"
import { Frames } from "../replay/Frames.ts"
import { type BaseColumns, copy, type Rollout } from "../rollout/Rollout.ts"

/** The parts of a rollout that the memory stores. */
type PlayedRows = Pick<Rollout<BaseColumns>, "steps" | "columns" | "rewards" | "terminated" | "truncated">

/** Keeps the last steps of every env; sequences of consecutive steps can be drawn from it. */
export interface SequenceMemory {
  /** Returns the number of steps of each env that the memory holds. */
  readonly filled: () => number
  readonly remember: (rollout: PlayedRows) => void
  /** Draws sequences and copies them into arrays, one after another. */
  readonly drawSequences: (random: Stream, into: Sequences) => void
  /**
   * Draws short histories of observations, each with the sign of the reward that followed. Half of the histories precede a
   * reward that is not zero, if the memory has any.
   */
  readonly drawRewards: (random: Stream, into: RewardFrames) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

interface Sequences {
  readonly count: number
  readonly steps: number
  /** The observations, of shape [count, steps + 1, size]; the last one of each sequence follows the sequence's last step. */
  readonly observations: Float32Array
  /** The actions of the steps, of shape [count, steps], or [count, steps, size] for continuous actions. */
  readonly actions: Float32Array | Int32Array
  readonly rewards: Float32Array
  /** 0 where the episode ended with the step, else 1. */
  readonly continues: Float32Array
  /** 0 where a truncation cuts off later rewards, so that the return of the step is unknown, else 1. */
  readonly known: Float32Array
  /** 1 where an episode or the sequence begins, else 0; of shape [count, steps + 1]. */
  readonly fresh: Float32Array
}

interface RewardFrames {
  readonly count: number
  /** The number of observations in a history. */
  readonly length: number
  /** The observations, of shape [count, length, size]. */
  readonly observations: Float32Array
  /** The class of the reward that followed: 0 for no reward, 1 for a positive one, 2 for a negative one. */
  readonly classes: Int32Array
}

// These flags say how an episode ended with a step.
const terminal = 1
const cut = 2

interface SequenceMemoryOptions {
  readonly numEnvs: number
  readonly observationSize: number
  readonly actionSize: number
  /** The number of steps of each env that it can hold. */
  readonly capacity: number
}

/** Returns the bytes of a full memory whose observations are stored as bytes, as those of most images are. */
export const sequenceMemoryBytes = ({
  numEnvs,
  observationSize,
  actionSize,
  capacity,
}: SequenceMemoryOptions): number => capacity * numEnvs * (observationSize + actionSize * 4 + 13)

export const makeSequenceMemory = (options: SequenceMemoryOptions): SequenceMemory => {
  const { numEnvs, observationSize: width, actionSize, capacity } = options
  const places = capacity * numEnvs
  const frames = new Frames(places, width)
  const actions = new Float32Array(places * actionSize)
  const rewards = new Float32Array(places)
  const ended = new Uint8Array(places)
  const position = Int32Array.of(0, 0)
  /** The places of steps with a reward that is not zero, and of steps without one; `drawRewards` fills both anew. */
  const rewarded = new Int32Array(places)
  const unrewarded = new Int32Array(places)

  /** Returns the place of a step of an env; `age` is counted from the oldest step. */
  const placeOf = (age: number, env: number): number =>
    ((position[0] - position[1] + age + capacity) % capacity) * numEnvs + env

  const remember = ({ steps, columns, rewards: received, terminated, truncated }: PlayedRows): void => {
    for (let t = 0; t < steps; t++) {
      for (let env = 0; env < numEnvs; env++) {
        const row = t * numEnvs + env
        const place = position[0] * numEnvs + env
        frames.write(place, columns.observations, row * width)
        copy(columns.actions, row * actionSize, actions, place * actionSize, actionSize)
        rewards[place] = received[row]
        ended[place] = terminated[row] !== 0 ? terminal : truncated[row] !== 0 ? cut : 0
      }
      position[0] = (position[0] + 1) % capacity
      position[1] = Math.min(position[1] + 1, capacity)
    }
  }

  const drawSequences = (random: Stream, into: Sequences): void => {
    for (let sequence = 0; sequence < into.count; sequence++) {
      const env = random.integer(numEnvs)
      const first = random.integer(position[1] - into.steps)
      let begins = true
      for (let step = 0; step <= into.steps; step++) {
        const place = placeOf(first + step, env)
        const observation = sequence * (into.steps + 1) + step
        frames.read(place, into.observations, observation * width)
        into.fresh[observation] = begins ? 1 : 0
        begins = ended[place] !== 0
        if (step === into.steps) break
        const row = sequence * into.steps + step
        copy(actions, place * actionSize, into.actions, row * actionSize, actionSize)
        into.rewards[row] = rewards[place]
        into.continues[row] = begins ? 0 : 1
      }
      let known = 1
      for (let step = into.steps - 1; step >= 0; step--) {
        const end = ended[placeOf(first + step, env)]
        if (end !== 0) known = end === cut ? 0 : 1
        into.known[sequence * into.steps + step] = known
      }
    }
  }

  const drawRewards = (random: Stream, into: RewardFrames): void => {
    let rewardedCount = 0
    let unrewardedCount = 0
    for (let age = into.length - 1; age < position[1]; age++) {
      for (let env = 0; env < numEnvs; env++) {
        const candidate = age * numEnvs + env
        if (rewards[placeOf(age, env)] === 0) unrewarded[unrewardedCount++] = candidate
        else rewarded[rewardedCount++] = candidate
      }
    }
    for (let index = 0; index < into.count; index++) {
      const wantsReward = random.uniform() < 0.5
      const takesReward = rewardedCount > 0 && (wantsReward || unrewardedCount === 0)
      const candidate = takesReward
        ? rewarded[random.integer(rewardedCount)]
        : unrewarded[random.integer(unrewardedCount)]
      const env = candidate % numEnvs
      const age = (candidate - env) / numEnvs
      const reward = rewards[placeOf(age, env)]
      into.classes[index] = reward > 0 ? 1 : reward < 0 ? 2 : 0
      // A history does not include steps of the previous episode: the first observation is repeated instead.
      let earliest = age
      while (earliest > age - into.length + 1 && ended[placeOf(earliest - 1, env)] === 0) earliest--
      for (let back = 0; back < into.length; back++) {
        const place = placeOf(Math.max(earliest, age - into.length + 1 + back), env)
        frames.read(place, into.observations, (index * into.length + back) * width)
      }
    }
  }

  /** Returns the filled part. Until the memory is full, the steps start at index 0, and each step holds all envs. */
  const filled = (): Filled => ({ numEnvs: 1, capacity: places, used: position[1] * numEnvs })

  return {
    filled: () => position[1],
    remember,
    drawSequences,
    drawRewards,
    state: () => ({
      ...frames.state("frames", filled()),
      ...filledPart("actions", actions, actionSize, filled()),
      ...filledPart("rewards", rewards, 1, filled()),
      ...filledPart("ended", ended, 1, filled()),
      position: namedVector(position),
    }),
    restore: (arrays) => {
      copyInto(arrays, "position", position)
      frames.restore(arrays, "frames", filled())
      restoreFilled(arrays, "actions", actions, actionSize, filled())
      restoreFilled(arrays, "rewards", rewards, 1, filled())
      restoreFilled(arrays, "ended", ended, 1, filled())
    },
  }
}
