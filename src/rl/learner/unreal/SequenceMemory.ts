/** Stores the last steps of every env for UNREAL's auxiliary tasks, and draws sequences from them to replay. */
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
  /** The number of steps of each env that the memory can hold. */
  readonly capacity: number
  /** The number of sequences, and also of histories, to draw, and (`steps`) the number of steps of a sequence. */
  readonly sequences: number
  readonly steps: number
}

/** Returns the bytes of a full memory: a step has its observation, action (4), reward (4), flag (1), two lists (8). */
export const sequenceMemoryBytes = (capacity: number, numEnvs: number, observationSize: number): number =>
  capacity * numEnvs * (observationSize + 17)

/** The last steps of every env. */
interface Steps {
  readonly options: SequenceMemoryOptions
  readonly places: number
  readonly frames: Frames
  readonly actions: Float32Array
  readonly rewards: Float32Array
  readonly ended: Uint8Array
  /** The index of the next step to write, and the number of steps stored; both are equal for all envs. */
  readonly position: Int32Array
  /** Steps with a reward that is not 0, and all others, each as age · numEnvs + env; `drawRewards` fills both. */
  readonly rewarded: Int32Array
  readonly unrewarded: Int32Array
}

/** Makes a memory of the last steps of every env, from which sequences of consecutive steps can be drawn. */
export const makeSequenceMemory = (options: SequenceMemoryOptions) => {
  const { numEnvs, observationSize, capacity } = options
  const places = capacity * numEnvs
  const steps: Steps = {
    options,
    places,
    frames: new Frames(places, observationSize),
    actions: new Float32Array(places),
    rewards: new Float32Array(places),
    ended: new Uint8Array(places),
    position: Int32Array.of(0, 0),
    rewarded: new Int32Array(places),
    unrewarded: new Int32Array(places),
  }
  return {
    /** Returns the number of steps of each env that the memory holds. */
    filled: (): number => steps.position[1],
    remember: (rollout: PlayedRows): void => remember(steps, rollout),
    drawSequences: (random: Stream, into: SequenceArrays): void => drawSequences(steps, random, into),
    drawRewards: (random: Stream, into: HistoryArrays): void => drawRewards(steps, random, into),
    state: (): NamedArrays => save(steps),
    restore: (arrays: NamedArrays): void => restore(steps, arrays),
  }
}

type SequenceArrays = Arrays<Omit<ReplayColumns, "replayReady">>
type HistoryArrays = Arrays<Pick<ReplayColumns, "replayHistories" | "replayClasses">>

/** Returns the index of a step in the arrays; `age` counts from 0, the oldest step of the env. */
const placeOf = ({ options: { numEnvs, capacity }, position }: Steps, age: number, env: number): number =>
  ((position[0] - position[1] + age + capacity) % capacity) * numEnvs + env

/** Stores the steps of a rollout. In a full memory they replace the oldest steps. */
const remember = (memory: Steps, rollout: PlayedRows): void => {
  const { frames, actions, rewards, ended, position } = memory
  const { numEnvs, observationSize: width, capacity } = memory.options
  const { columns, terminated, truncated } = rollout
  for (let t = 0; t < rollout.steps; t++) {
    for (let env = 0; env < numEnvs; env++) {
      const row = t * numEnvs + env
      const place = position[0] * numEnvs + env
      frames.write(place, columns.observations, row * width)
      actions[place] = columns.actions[row]
      rewards[place] = rollout.rewards[row]
      ended[place] = endingOf(terminated[row], truncated[row])
    }
    position[0] = (position[0] + 1) % capacity
    position[1] = Math.min(position[1] + 1, capacity)
  }
}

const endingOf = (terminated: number, truncated: number): number => {
  if (terminated !== 0) return terminal
  return truncated !== 0 ? cut : 0
}

/** Draws `sequences` sequences of `steps` steps each, and copies them into the arrays `into`, one after another. */
const drawSequences = (memory: Steps, random: Stream, into: SequenceArrays): void => {
  const { numEnvs, sequences, steps } = memory.options
  for (let sequence = 0; sequence < sequences; sequence++) {
    const env = random.integer(numEnvs)
    const first = random.integer(memory.position[1] - steps)
    copySequence(memory, first, env, into, sequence)
    // Go backwards: the end of an episode says whether the returns of the steps before it are isKnown.
    let isKnown = 1
    for (let step = steps - 1; step >= 0; step--) {
      const end = memory.ended[placeOf(memory, first + step, env)]
      if (end !== 0) isKnown = end === cut ? 0 : 1
      into.replayKnown[sequence * steps + step] = isKnown
    }
  }
}

/** Copies the steps of an env from this age on, and the observation after them. */
const copySequence = (memory: Steps, first: number, env: number, into: SequenceArrays, sequence: number): void => {
  const { frames, actions, rewards, ended } = memory
  const { observationSize: width, steps } = memory.options
  let begins = true
  for (let step = 0; step <= steps; step++) {
    const place = placeOf(memory, first + step, env)
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
}

/**
 * Draws short histories of observations, each with the sign of the reward that followed. On average half of the
 * histories precede a reward that is not zero, if the memory has any.
 */
const drawRewards = (memory: Steps, random: Stream, into: HistoryArrays): void => {
  const { rewards, rewarded, unrewarded } = memory
  const { numEnvs, sequences } = memory.options
  const { rewardedCount, unrewardedCount } = sortByReward(memory)
  for (let index = 0; index < sequences; index++) {
    const wantsReward = random.uniform() < 0.5
    const takesReward = rewardedCount > 0 && (wantsReward || unrewardedCount === 0)
    const candidate = takesReward
      ? rewarded[random.integer(rewardedCount)]
      : unrewarded[random.integer(unrewardedCount)]
    const env = candidate % numEnvs
    const age = (candidate - env) / numEnvs
    into.replayClasses[index] = classOf(rewards[placeOf(memory, age, env)])
    copyHistory(memory, age, env, into, index)
  }
}

const classOf = (reward: number): number => {
  if (reward > 0) return 1
  return reward < 0 ? 2 : 0
}

/** Fills the lists of steps with a reward and without one, and returns their lengths. */
const sortByReward = (memory: Steps) => {
  const { options, rewards, position, rewarded, unrewarded } = memory
  let rewardedCount = 0
  let unrewardedCount = 0
  for (let age = history - 1; age < position[1]; age++) {
    for (let env = 0; env < options.numEnvs; env++) {
      const candidate = age * options.numEnvs + env
      if (rewards[placeOf(memory, age, env)] === 0) unrewarded[unrewardedCount++] = candidate
      else rewarded[rewardedCount++] = candidate
    }
  }
  return { rewardedCount, unrewardedCount }
}

/** Copies the observations that end with the step of this age. */
const copyHistory = (memory: Steps, age: number, env: number, into: HistoryArrays, index: number): void => {
  const { options, frames, ended } = memory
  // A history does not include steps of the previous episode: the first observation is repeated instead.
  let earliest = age
  while (earliest > age - history + 1 && ended[placeOf(memory, earliest - 1, env)] === 0) earliest--
  for (let back = 0; back < history; back++) {
    const place = placeOf(memory, Math.max(earliest, age - history + 1 + back), env)
    frames.read(place, into.replayHistories, (index * history + back) * options.observationSize)
  }
}

/**
 * Returns the filled part of the arrays. The numbers of all envs for a step are adjacent, so the arrays count as those
 * of one env.
 */
const filledPlaces = ({ options, places, position }: Steps): Filled => ({
  numEnvs: 1,
  capacity: places,
  used: position[1] * options.numEnvs,
})

const save = (memory: Steps): NamedArrays => {
  const { frames, actions, rewards, ended, position } = memory
  const filled = filledPlaces(memory)
  return {
    ...frames.state("frames", filled),
    ...filledPart("actions", actions, 1, filled),
    ...filledPart("rewards", rewards, 1, filled),
    ...filledPart("ended", ended, 1, filled),
    position: namedVector(position),
  }
}

const restore = (memory: Steps, arrays: NamedArrays): void => {
  const { frames, actions, rewards, ended, position } = memory
  copyInto(arrays, "position", position)
  const filled = filledPlaces(memory)
  frames.restore(arrays, "frames", filled)
  restoreFilled(arrays, "actions", actions, 1, filled)
  restoreFilled(arrays, "rewards", rewards, 1, filled)
  restoreFilled(arrays, "ended", ended, 1, filled)
}
