/** Plays the rollouts of an on-policy learner: acts in the envs, and keeps all rows of the last rollout in memory. */
import type { Program, TensorData } from "../../../tensor/backend/Backend.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { arraysOf, type Columns } from "../Batch.ts"
import { type Steps, waitFor } from "../drive.ts"
import { numbersOf } from "../learnerState.ts"
import { drawOf } from "../stateDependent.ts"
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
  { task, steps, noiseRepeat, freshNoise, sequence, ...experience }: Experience<Columns>,
  act: Program,
  feeds: Readonly<Record<string, TensorData>>,
  hooks: ReadonlyArray<StepHooks>,
): object {
  const { keeps, noiseSize } = experience.actor
  const { numEnvs, seed } = task
  const rows = steps * numEnvs
  // For sequences, the feeds have another order of rows, so the rollout cannot write its rows there.
  const columns = arraysOf(experience.columns, rows, sequence > 1 ? {} : feeds)
  const { observations, actions } = columns
  const rewards = new Float32Array(rows)
  const terminated = new Uint8Array(rows)
  const truncated = new Uint8Array(rows)
  const actObservations = act.feeds.observations
  const width = actObservations.length / numEnvs
  const actionWidth = act.results.actions.length / numEnvs
  const envActions = numbersOf(act.results, "envActions")

  const keptColumns = keeps.map((name) => ({
    name,
    result: act.results[name],
    column: columns[name],
    last: new Float32Array(numEnvs),
    atTruncation: new Float32Array(rows),
  }))
  const finalObservations = new GrowingRows(width, Math.max(16, numEnvs))
  const truncatedRows: Array<number> = []

  // The random numbers of the rollout's steps. If several steps share them, those of `heldDraw`.
  const holds = noiseRepeat > 1 || freshNoise
  const noise = new Float32Array((holds ? numEnvs : rows) * noiseSize)
  let heldDraw = -1
  const drawNoise = (iteration: number, t: number): void => {
    const size = numEnvs * noiseSize
    if (!holds) {
      if (t === 0) stream(seed, "act", iteration).fillUniform(noise)
      copy(noise, t * size, act.feeds.noise, 0, size)
      return
    }
    const draw = drawOf({ noiseRepeat, freshNoise }, steps, { iteration, t })
    if (draw !== heldDraw) stream(seed, "act", draw).fillUniform(noise)
    heldDraw = draw
    copy(noise, 0, act.feeds.noise, 0, size)
  }

  const observe = (envs: AnyBatchEnv, t: number): void => {
    copy(envs.observations, 0, actObservations, 0, numEnvs * width)
    if (t < steps) copy(envs.observations, 0, observations, t * numEnvs * width, numEnvs * width)
    for (const hook of hooks) hook.beforeAct?.(t)
  }

  const keepActions = (t: number): void => {
    const base = t * numEnvs
    copy(act.results.actions, 0, actions, base * actionWidth, numEnvs * actionWidth)
    for (const { result, column } of keptColumns) copy(result, 0, column, base, numEnvs)
  }

  const keepStep = (envs: AnyBatchEnv, t: number): void => {
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

  const entries = (pick: (column: (typeof keptColumns)[number]) => Float32Array) =>
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
    collect: function* (envs: AnyBatchEnv, iteration: number): Steps<void> {
      finalObservations.clear()
      for (const hook of hooks) hook.start?.()
      for (let t = 0; t < steps; t++) {
        drawNoise(iteration, t)
        observe(envs, t)
        yield act
        keepActions(t)
        const wait = envs.step(envActions)
        if (wait !== undefined) yield waitFor(wait)
        keepStep(envs, t)
      }
      for (let first = 0; first < finalObservations.count; first += numEnvs) {
        const count = Math.min(numEnvs, finalObservations.count - first)
        finalObservations.copy(first, count, actObservations)
        for (const hook of hooks) hook.beforeTruncated?.(first, count)
        yield act
        for (const { result, atTruncation } of keptColumns) {
          for (let index = 0; index < count; index++) atTruncation[truncatedRows[first + index]] = result[index]
        }
      }
      observe(envs, steps)
      yield act
      for (const { result, last } of keptColumns) copy(result, 0, last, 0, numEnvs)
    },
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
