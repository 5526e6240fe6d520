/** The memory of UNREAL's auxiliary tasks: stores the last steps of every env, and draws sequences to replay. */
import type { Stream } from "../../../base/rng/Rng.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { type Arrays, f32, i32, perUpdate } from "../Batch.ts"
import { copyInto, namedVector } from "../learnerState.ts"
import { type Filled, filledPart, Frames, restoreFilled } from "../replay/storage.ts"
import type { BaseColumns, Rollout } from "../rollout/RolloutData.ts"

/** The properties of a rollout that `remember` reads. */
type PlayedRows = Pick<Rollout<BaseColumns>, "steps" | "columns" | "rewards" | "terminated" | "truncated">

/** The number of consecutive observations (a history) from which the sign of the next reward is predicted. */
export const history = 3

/** Declares the columns that the memory fills: sequences, and histories with the class of the reward that followed. */
export const replayColumns = (sequences: number, steps: number, observationSize: number) => ({
  /** 1 once the memory holds enough steps, else 0. */
  replayReady: perUpdate(f32()),
  /** The observations; the last one of each sequence follows the sequence's last step. */
  replayObservations: perUpdate(f32(sequences * (steps + 1), observationSize)),
  replayActions: perUpdate(i32(sequences * steps)),
  replayRewards: perUpdate(f32(sequences, steps, 1)),
  /** 0 where the episode ended with the step, else 1. */
  replayContinues: perUpdate(f32(sequences, steps, 1)),
  /** 0 where a truncation cuts off later rewards, so that the return of the step is unknown, else 1. */
  replayKnown: perUpdate(f32(sequences, steps, 1)),
  /** 1 where an episode or the sequence begins, else 0. */
  replayFresh: perUpdate(f32(sequences * (steps + 1))),
  replayHistories: perUpdate(f32(sequences * history, observationSize)),
  /** The class of the reward that followed a history: 0 for no reward, 1 for a positive one, 2 for a negative one. */
  replayClasses: perUpdate(i32(sequences)),
})
export type ReplayColumns = ReturnType<typeof replayColumns>

// These flags say how an episode ended with a step: the env ended it, or a limit cut it off. 0 means neither.
const terminal = 1
const cut = 2

interface SequenceMemoryOptions {
  readonly numEnvs: number
  readonly observationSize: number
  /** The number of steps of each env that it can hold. */
  readonly capacity: number
  /** The number of sequences to draw, also of histories (see `history`), and the number of steps of a sequence. */
  readonly sequences: number
  readonly steps: number
}

/** Returns the bytes of a full memory: a step has its observation, action (4), reward (4), flag (1), two lists (8). */
export const sequenceMemoryBytes = (capacity: number, numEnvs: number, observationSize: number): number =>
  capacity * numEnvs * (observationSize + 17)

/** Makes a memory of the last steps of every env, from which sequences of consecutive steps can be drawn. */
export const makeSequenceMemory = (options: SequenceMemoryOptions) => {
  const { numEnvs, observationSize: width, capacity, sequences, steps } = options
  const places = capacity * numEnvs
  const frames = new Frames(places, width)
  const actions = new Float32Array(places)
  const rewards = new Float32Array(places)
  const ended = new Uint8Array(places)
  /** The index of the next step to write, and the number of steps stored, both for each env. */
  const position = Int32Array.of(0, 0)
  /** Steps with a reward that is not 0, and all others, each as age · numEnvs + env; `drawRewards` fills both. */
  const rewarded = new Int32Array(places)
  const unrewarded = new Int32Array(places)

  /** Returns the index of a step in the arrays; `age` counts from 0, the oldest step of the env. */
  const placeOf = (age: number, env: number): number =>
    ((position[0] - position[1] + age + capacity) % capacity) * numEnvs + env

  /** Stores the steps of a rollout. In a full memory they replace the oldest steps. */
  const remember = ({ columns, rewards: received, terminated, truncated, ...rollout }: PlayedRows): void => {
    for (let t = 0; t < rollout.steps; t++) {
      for (let env = 0; env < numEnvs; env++) {
        const row = t * numEnvs + env
        const place = position[0] * numEnvs + env
        frames.write(place, columns.observations, row * width)
        actions[place] = columns.actions[row]
        rewards[place] = received[row]
        ended[place] = terminated[row] !== 0 ? terminal : truncated[row] !== 0 ? cut : 0
      }
      position[0] = (position[0] + 1) % capacity
      position[1] = Math.min(position[1] + 1, capacity)
    }
  }

  /** Draws `sequences` sequences of `steps` steps each, and copies them into the arrays `into`, one after another. */
  const drawSequences = (random: Stream, into: Arrays<Omit<ReplayColumns, "replayReady">>): void => {
    for (let sequence = 0; sequence < sequences; sequence++) {
      const env = random.integer(numEnvs)
      const first = random.integer(position[1] - steps)
      let begins = true
      for (let step = 0; step <= steps; step++) {
        const place = placeOf(first + step, env)
        const observation = sequence * (steps + 1) + step
        frames.read(place, into.replayObservations, observation * width)
        into.replayFresh[observation] = begins ? 1 : 0
        begins = ended[place] !== 0
        if (step === steps) break
        const row = sequence * steps + step
        into.replayActions[row] = actions[place]
        into.replayRewards[row] = rewards[place]
        into.replayContinues[row] = begins ? 0 : 1
      }
      // Go backwards: the end of an episode says whether the returns of the steps before it are known.
      let known = 1
      for (let step = steps - 1; step >= 0; step--) {
        const end = ended[placeOf(first + step, env)]
        if (end !== 0) known = end === cut ? 0 : 1
        into.replayKnown[sequence * steps + step] = known
      }
    }
  }

  /**
   * Draws short histories of observations, each with the sign of the reward that followed. On average half of the
   * histories precede a reward that is not zero, if the memory has any.
   */
  const drawRewards = (
    random: Stream,
    into: Arrays<Pick<ReplayColumns, "replayHistories" | "replayClasses">>,
  ): void => {
    let rewardedCount = 0
    let unrewardedCount = 0
    for (let age = history - 1; age < position[1]; age++) {
      for (let env = 0; env < numEnvs; env++) {
        const candidate = age * numEnvs + env
        if (rewards[placeOf(age, env)] === 0) unrewarded[unrewardedCount++] = candidate
        else rewarded[rewardedCount++] = candidate
      }
    }
    for (let index = 0; index < sequences; index++) {
      const wantsReward = random.uniform() < 0.5
      const takesReward = rewardedCount > 0 && (wantsReward || unrewardedCount === 0)
      const candidate = takesReward
        ? rewarded[random.integer(rewardedCount)]
        : unrewarded[random.integer(unrewardedCount)]
      const env = candidate % numEnvs
      const age = (candidate - env) / numEnvs
      const reward = rewards[placeOf(age, env)]
      into.replayClasses[index] = reward > 0 ? 1 : reward < 0 ? 2 : 0
      // A history does not include steps of the previous episode: the first observation is repeated instead.
      let earliest = age
      while (earliest > age - history + 1 && ended[placeOf(earliest - 1, env)] === 0) earliest--
      for (let back = 0; back < history; back++) {
        const place = placeOf(Math.max(earliest, age - history + 1 + back), env)
        frames.read(place, into.replayHistories, (index * history + back) * width)
      }
    }
  }

  /** Says which part of the arrays is filled. The envs' numbers of a step are adjacent, so all envs count as one. */
  const filled = (): Filled => ({ numEnvs: 1, capacity: places, used: position[1] * numEnvs })

  return {
    /** Returns the number of steps of each env that the memory holds. */
    filled: (): number => position[1],
    remember,
    drawSequences,
    drawRewards,
    state: (): NamedArrays => ({
      ...frames.state("frames", filled()),
      ...filledPart("actions", actions, 1, filled()),
      ...filledPart("rewards", rewards, 1, filled()),
      ...filledPart("ended", ended, 1, filled()),
      position: namedVector(position),
    }),
    restore: (arrays: NamedArrays): void => {
      copyInto(arrays, "position", position)
      frames.restore(arrays, "frames", filled())
      restoreFilled(arrays, "actions", actions, 1, filled())
      restoreFilled(arrays, "rewards", rewards, 1, filled())
      restoreFilled(arrays, "ended", ended, 1, filled())
    },
  }
}
