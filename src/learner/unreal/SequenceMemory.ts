import type { Stream } from "../../rng/Rng.ts"
import type { NamedArrays } from "../Algorithm.ts"
import { copyInto, namedVector } from "../learnerState.ts"
import { type Filled, filledPart, restoreFilled } from "../replay/storage.ts"
import { Frames } from "../replay/Frames.ts"
import { copy, type Rollout } from "../rollout/Rollout.ts"

/** The last steps of every env, as sequences can be drawn from them. */
export interface SequenceMemory {
  /** Steps of each env that are kept. */
  readonly filled: () => number
  readonly remember: (rollout: Rollout) => void
  /** Copies drawn sequences, one after another. */
  readonly drawSequences: (random: Stream, into: Sequences) => void
  /** Copies short histories and the sign of the reward that followed: half of them, where there are any, not zero. */
  readonly drawRewards: (random: Stream, into: RewardFrames) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

export interface Sequences {
  readonly count: number
  readonly steps: number
  /** [count, steps + 1, size]: the last one is what came after. */
  readonly observations: Float32Array
  /** [count, steps, …] */
  readonly actions: Float32Array | Int32Array
  readonly rewards: Float32Array
  /** 0 where the episode ended with the step. */
  readonly continues: Float32Array
  /** 0 where what follows is cut off by a truncation, so that nobody knows what the step was worth. */
  readonly known: Float32Array
  /** [count, steps + 1]: 1 where an episode, or the sequence, begins. */
  readonly fresh: Float32Array
}

export interface RewardFrames {
  readonly count: number
  /** Observations in a history. */
  readonly length: number
  /** [count, length, size] */
  readonly observations: Float32Array
  /** 0, + and − as 0, 1 and 2. */
  readonly classes: Int32Array
}

// How an episode ended with a step, if it did.
const terminal = 1
const cut = 2

export interface SequenceMemoryOptions {
  readonly numEnvs: number
  readonly observationSize: number
  readonly actionSize: number
  /** Steps of each env. */
  readonly capacity: number
}

/** How much memory a full one takes; observations as the bytes that those of images mostly are. */
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
  const paying = new Int32Array(places)
  const dull = new Int32Array(places)

  /** The place of an env's step, counted from the oldest. */
  const placeOf = (age: number, env: number): number =>
    ((position[0] - position[1] + age + capacity) % capacity) * numEnvs + env

  const remember = ({ steps, columns, rewards: paid, terminated, truncated }: Rollout): void => {
    const observations = columns.observations
    if (!(observations instanceof Float32Array)) throw new TypeError("observations are real numbers")
    for (let t = 0; t < steps; t++) {
      for (let env = 0; env < numEnvs; env++) {
        const row = t * numEnvs + env
        const place = position[0] * numEnvs + env
        frames.write(place, observations, row * width)
        copy(columns.actions, row * actionSize, actions, place * actionSize, actionSize)
        rewards[place] = paid[row]
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
        const seen = sequence * (into.steps + 1) + step
        frames.read(place, into.observations, seen * width)
        into.fresh[seen] = begins ? 1 : 0
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
    let pays = 0
    let doesNot = 0
    for (let age = into.length - 1; age < position[1]; age++) {
      for (let env = 0; env < numEnvs; env++) {
        const candidate = age * numEnvs + env
        if (rewards[placeOf(age, env)] === 0) dull[doesNot++] = candidate
        else paying[pays++] = candidate
      }
    }
    for (let index = 0; index < into.count; index++) {
      const wantsPay = random.uniform() < 0.5
      const fromPaying = pays > 0 && (wantsPay || doesNot === 0)
      const candidate = fromPaying ? paying[random.integer(pays)] : dull[random.integer(doesNot)]
      const env = candidate % numEnvs
      const age = (candidate - env) / numEnvs
      const reward = rewards[placeOf(age, env)]
      into.classes[index] = reward > 0 ? 1 : reward < 0 ? 2 : 0
      // A history doesn't reach into the episode before: its first observation stands for those.
      let earliest = age
      while (earliest > age - into.length + 1 && ended[placeOf(earliest - 1, env)] === 0) earliest--
      for (let back = 0; back < into.length; back++) {
        const place = placeOf(Math.max(earliest, age - into.length + 1 + back), env)
        frames.read(place, into.observations, (index * into.length + back) * width)
      }
    }
  }

  /** Steps follow each other, each with all envs, from the beginning on until the memory is full. */
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
