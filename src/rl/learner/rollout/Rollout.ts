/** Plays the rollouts of an on-policy learner: acts in the envs, and keeps all rows of the last rollout in memory. */
import type { Program, TensorData } from "../../../tensor/backend/Backend.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { type Arrays, arraysOf, type Columns } from "../Batch.ts"
import { type Steps, waitFor } from "../drive.ts"
import { numbersOf } from "../learnerState.ts"
import { drawOf, type NoiseSharing } from "../stateDependent.ts"
import type { Experience } from "./Experience.ts"
import type { BaseColumns, Rollout, StepHooks } from "./RolloutData.ts"

/**
 * Makes the rollout of an experience, which the program `act` plays. `feeds` are the input arrays of the first update
 * program: a column is written directly into the feed of its name if the lengths match, and then needs no copy before
 * the update. The caller may add `hooks` until the first rollout.
 */
export function makeRollout<C extends BaseColumns & Columns>(
  experience: Experience<C>,
  act: Program,
  feeds: Readonly<Record<string, TensorData>>,
  hooks: ReadonlyArray<StepHooks>,
): Rollout<C>
export function makeRollout(
  experience: Experience<Columns>,
  act: Program,
  feeds: Readonly<Record<string, TensorData>>,
  hooks: ReadonlyArray<StepHooks>,
): object {
  const playing = playingOf(experience, act, feeds, hooks)
  const { steps, numEnvs, columns, rewards, terminated, truncated, keptColumns, finalObservations } = playing
  const entries = (pick: (column: KeptColumn) => Float32Array) =>
    Object.fromEntries(keptColumns.map((column) => [column.name, pick(column)]))
  return {
    steps,
    numEnvs,
    columns,
    rewards,
    terminated,
    truncated,
    last: entries(({ last }) => last),
    atTruncation: entries(({ atTruncation }) => atTruncation),
    truncations: () => finalObservations.count,
    collect: (envs: AnyBatchEnv, iteration: number): Steps<void> => collect(playing, envs, iteration),
  }
}

/** A column of numbers that the actor computes for each observation, with arrays for observations that have no row. */
interface KeptColumn {
  readonly name: string
  readonly result: TensorData
  readonly column: Float32Array | Int32Array
  readonly last: Float32Array
  readonly atTruncation: Float32Array
}

/** The state of a rollout that is played. */
interface RolloutPlaying {
  readonly steps: number
  readonly numEnvs: number
  readonly act: Program
  readonly hooks: ReadonlyArray<StepHooks>
  readonly columns: Arrays<Columns>
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  /** The length of an observation, and (`actionWidth`) of an action. */
  readonly width: number
  readonly actionWidth: number
  readonly envActions: Float32Array | Int32Array
  readonly keptColumns: ReadonlyArray<KeptColumn>
  /** The final observations of truncated episodes, and the rows of their last steps. */
  readonly finalObservations: GrowingRows
  readonly truncatedRows: Array<number>
  readonly noise: StepNoise
}

/**
 * The random numbers for the actions. If several steps share a draw, `numbers` holds the draw with the number
 * `heldDraw`.
 */
interface StepNoise {
  readonly seed: number
  readonly steps: number
  readonly sharing: NoiseSharing
  readonly holds: boolean
  /** The number of random numbers of a step. */
  readonly size: number
  readonly numbers: Float32Array
  heldDraw: number
}

const playingOf = (
  { task, steps, sequence, ...experience }: Experience<Columns>,
  act: Program,
  feeds: Readonly<Record<string, TensorData>>,
  hooks: ReadonlyArray<StepHooks>,
): RolloutPlaying => {
  const { numEnvs } = task
  const rows = steps * numEnvs
  // With sequences, the feeds order the rows differently, so the rollout needs arrays of its own.
  const columns = arraysOf(experience.columns, rows, sequence > 1 ? {} : feeds)
  const width = act.feeds.observations.length / numEnvs
  return {
    steps,
    numEnvs,
    act,
    hooks,
    columns,
    rewards: new Float32Array(rows),
    terminated: new Uint8Array(rows),
    truncated: new Uint8Array(rows),
    width,
    actionWidth: act.results.actions.length / numEnvs,
    envActions: numbersOf(act.results, "envActions"),
    keptColumns: experience.actor.keeps.map((name) => ({
      name,
      result: act.results[name],
      column: columns[name],
      last: new Float32Array(numEnvs),
      atTruncation: new Float32Array(rows),
    })),
    finalObservations: new GrowingRows(width, Math.max(16, numEnvs)),
    truncatedRows: [],
    noise: stepNoiseOf({ ...experience, task, steps }),
  }
}

const stepNoiseOf = ({
  task: { numEnvs, seed },
  steps,
  actor,
  noiseRepeat,
  freshNoise,
}: Pick<Experience<Columns>, "task" | "steps" | "actor" | "noiseRepeat" | "freshNoise">): StepNoise => {
  const holds = noiseRepeat > 1 || freshNoise
  const size = numEnvs * actor.noiseSize
  const numbers = new Float32Array((holds ? 1 : steps) * size)
  return { seed, steps, sharing: { noiseRepeat, freshNoise }, holds, size, numbers, heldDraw: -1 }
}

/**
 * Plays the rollout: acts in the envs, then evaluates the final observations of truncated episodes and the observations
 * after the last step.
 */
const collect = function* (playing: RolloutPlaying, envs: AnyBatchEnv, iteration: number): Steps<void> {
  const { steps, numEnvs, act, hooks, envActions, keptColumns } = playing
  playing.finalObservations.clear()
  for (const hook of hooks) hook.start?.()
  for (let t = 0; t < steps; t++) {
    drawNoise(playing.noise, act, iteration, t)
    observe(playing, envs, t)
    yield act
    keepActions(playing, t)
    const wait = envs.step(envActions)
    if (wait !== undefined) yield waitFor(wait)
    keepStep(playing, envs, t)
  }
  yield* evaluateTruncated(playing)
  observe(playing, envs, steps)
  yield act
  for (const { result, last } of keptColumns) copy(result, 0, last, 0, numEnvs)
}

/** Writes the random numbers of step t to the input of the acting program. */
const drawNoise = (noise: StepNoise, { feeds }: Program, iteration: number, t: number): void => {
  const { seed, steps, sharing, holds, size, numbers } = noise
  if (!holds) {
    if (t === 0) stream(seed, "act", iteration).fillUniform(numbers)
    copy(numbers, t * size, feeds.noise, 0, size)
    return
  }
  const draw = drawOf(sharing, steps, { iteration, t })
  if (draw !== noise.heldDraw) stream(seed, "act", draw).fillUniform(numbers)
  noise.heldDraw = draw
  copy(numbers, 0, feeds.noise, 0, size)
}

/** Writes the observations before step t to the input of the acting program, and to their rows. */
const observe = (
  { steps, numEnvs, width, act, hooks, columns }: RolloutPlaying,
  envs: AnyBatchEnv,
  t: number,
): void => {
  copy(envs.observations, 0, act.feeds.observations, 0, numEnvs * width)
  if (t < steps) copy(envs.observations, 0, columns.observations, t * numEnvs * width, numEnvs * width)
  for (const hook of hooks) hook.beforeAct?.(t)
}

const keepActions = ({ numEnvs, actionWidth, act, columns, keptColumns }: RolloutPlaying, t: number): void => {
  const base = t * numEnvs
  copy(act.results.actions, 0, columns.actions, base * actionWidth, numEnvs * actionWidth)
  for (const { result, column } of keptColumns) copy(result, 0, column, base, numEnvs)
}

const keepStep = (playing: RolloutPlaying, envs: AnyBatchEnv, t: number): void => {
  const { numEnvs, hooks, rewards, terminated, truncated, width, finalObservations, truncatedRows } = playing
  const base = t * numEnvs
  for (let env = 0; env < numEnvs; env++) {
    rewards[base + env] = envs.rewards[env]
    terminated[base + env] = envs.terminated[env]
    truncated[base + env] = envs.truncated[env]
  }
  for (const hook of hooks) hook.afterStep?.(envs, t)
  for (let env = 0; env < numEnvs; env++) {
    // If an episode terminated in its last allowed step, it is over and its return is not bootstrapped.
    if (envs.truncated[env] === 0 || envs.terminated[env] !== 0) continue
    truncatedRows[finalObservations.count] = base + env
    finalObservations.add(envs.finalObservations, env * width)
    for (const hook of hooks) hook.truncated?.(env)
  }
}

/** Evaluates the final observations of truncated episodes, as many at a time as there are envs. */
const evaluateTruncated = function* (playing: RolloutPlaying): Steps<void> {
  const { numEnvs, act, hooks, keptColumns, finalObservations, truncatedRows } = playing
  for (let first = 0; first < finalObservations.count; first += numEnvs) {
    const count = Math.min(numEnvs, finalObservations.count - first)
    finalObservations.copy(first, count, act.feeds.observations)
    for (const hook of hooks) hook.beforeTruncated?.(first, count)
    yield act
    for (const { result, atTruncation } of keptColumns) {
      for (let index = 0; index < count; index++) atTruncation[truncatedRows[first + index]] = result[index]
    }
  }
}

/** Copies `length` numbers. For a few dozen numbers, a loop is faster than `set`, which needs a view of a part. */
export const copy = (
  from: ArrayLike<number>,
  fromOffset: number,
  to: { [index: number]: number },
  toOffset: number,
  length: number,
): void => {
  for (let index = 0; index < length; index++) to[toOffset + index] = from[fromOffset + index]
}

/** A list of vectors of one width in one array, which grows as needed and keeps its memory when it is cleared. */
export class GrowingRows {
  count = 0
  private contents: Float32Array
  private readonly width: number

  constructor(width: number, capacity: number) {
    this.width = width
    this.contents = new Float32Array(capacity * width)
  }

  clear(): void {
    this.count = 0
  }

  /** The numbers of all vectors; the next `add` can make this view out of date. */
  get numbers(): Float32Array {
    return this.contents.subarray(0, this.count * this.width)
  }

  /** Appends a copy of the vector that begins at index `from`. */
  add(numbers: ArrayLike<number>, from: number): void {
    const { width } = this
    const to = this.count * width
    if (to + width > this.contents.length) {
      const larger = new Float32Array(Math.max(width, this.contents.length * 2))
      larger.set(this.contents)
      this.contents = larger
    }
    for (let i = 0; i < width; i++) this.contents[to + i] = numbers[from + i]
    this.count++
  }

  /** Copies `count` vectors, starting with vector `first`, to the beginning of `into`. */
  copy(first: number, count: number, into: { [index: number]: number }): void {
    const from = first * this.width
    for (let i = 0; i < count * this.width; i++) into[i] = this.contents[from + i]
  }
}
