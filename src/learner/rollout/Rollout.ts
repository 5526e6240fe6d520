import type { Program, TensorData } from "../../backend/Backend.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import { stream } from "../../rng/Rng.ts"
import type { Task } from "../Algorithm.ts"
import type { Steps } from "../drive.ts"
import { CutRows } from "./CutRows.ts"

/** What a rollout keeps of each step, flat and time-major: row t · N + n. */
export type Columns = Readonly<Record<string, Float32Array | Int32Array>>

/** T steps of N envs: how they are played, and everything that was seen. */
export interface Rollout {
  readonly steps: number
  readonly numEnvs: number
  readonly observationSize: number
  /** `observations`, `actions`, what else the act program says of each row, and the columns that were asked for. */
  readonly columns: Columns
  readonly rewards: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  /** What the act program says of the final observation, where truncated, by its results' names. */
  readonly atCuts: Readonly<Record<string, Float32Array>>
  readonly cuts: () => number
  /** What the act program says of the observations after the last row, by its results' names. */
  readonly last: Readonly<Record<string, Float32Array>>
  /** With memory: the state before each row that begins a sequence, row by row of time, and the episodes' first rows. */
  readonly remembered: Remembered | undefined
  readonly collect: (envs: BatchEnv, iteration: number) => Steps<void>
}

/** What goes on from one rollout to the next. */
export interface Remembered {
  readonly size: number
  readonly memory: Float32Array
  readonly fresh: Float32Array
}

export interface RolloutOptions {
  readonly task: Task
  readonly steps: number
  readonly noiseSize: number
  /** Steps for which the same noise is used. */
  readonly noiseRepeat: number
  readonly memorySize: number
  /** Steps of a sequence that begins with a stored memory. */
  readonly sequence: number
  /**
   * Feeds `observations` and `noise`, with memory also `memory` and `fresh`; results `actions`, `envActions`, `values`,
   * with memory `nextMemory`, and any others of one number a row.
   */
  readonly act: Program
  /** Further columns, by their widths. */
  readonly columns: Readonly<Record<string, number>>
  /** Arrays that rows may be kept in where they fit: the update program's own feeds, so that nothing is copied again. */
  readonly feeds: Readonly<Record<string, TensorData>>
}

const special = ["actions", "envActions", "nextMemory"]

export const makeRollout = (options: RolloutOptions): Rollout => {
  const { task, steps, noiseSize, noiseRepeat, memorySize, sequence, act, feeds } = options
  const { numEnvs, seed } = task
  const rows = steps * numEnvs
  const actObservations = act.feeds.observations
  const width = actObservations.length / numEnvs
  const envActions = act.results.envActions
  if (envActions instanceof Uint8Array) throw new TypeError("actions are numbers")

  const floats = (name: string, size: number): Float32Array => {
    const feed = feeds[name]
    return feed instanceof Float32Array && feed.length === rows * size ? feed : new Float32Array(rows * size)
  }
  const observations = floats("observations", width)
  const actionWidth = act.results.actions.length / numEnvs
  const isDiscrete = act.results.actions instanceof Int32Array
  const discrete = feeds.actions instanceof Int32Array ? feeds.actions : new Int32Array(isDiscrete ? rows : 0)
  const actions = isDiscrete ? discrete : floats("actions", actionWidth)
  const said = Object.keys(act.results).filter((name) => !special.includes(name))
  const told = said.map((name) => ({
    from: act.results[name],
    to: floats(name, 1),
    last: new Float32Array(numEnvs),
    atCuts: new Float32Array(rows),
  }))
  const further = Object.entries(options.columns).map(([name, size]) => [name, floats(name, size)] as const)
  const nextObservations = further.find(([name]) => name === "nextObservations")?.[1]

  /** Of the whole rollout; of one step where it is held for several, which may begin in the rollout before. */
  const noise = new Float32Array(noiseRepeat === 1 ? rows * noiseSize : numEnvs * noiseSize)
  let heldDraw = -1
  const rewards = new Float32Array(rows)
  const terminated = new Uint8Array(rows)
  const truncated = new Uint8Array(rows)
  const cut = new CutRows(width + memorySize, Math.max(16, numEnvs))
  const remembered =
    memorySize === 0
      ? undefined
      : {
          size: memorySize,
          memory: new Float32Array(numEnvs * memorySize),
          fresh: new Float32Array(numEnvs).fill(1),
          /** [steps / sequence, numEnvs, size] */
          starts: new Float32Array((rows / sequence) * memorySize),
          freshRows: new Float32Array(rows),
        }

  const drawNoise = (iteration: number, t: number): void => {
    const size = numEnvs * noiseSize
    if (noiseRepeat === 1) {
      if (t === 0) stream(seed, "act", iteration).fillUniform(noise)
      copy(noise, t * size, act.feeds.noise, 0, size)
      return
    }
    const draw = Math.floor((iteration * steps + t) / noiseRepeat)
    if (draw !== heldDraw) stream(seed, "act", draw).fillUniform(noise)
    heldDraw = draw
    copy(noise, 0, act.feeds.noise, 0, size)
  }

  const beforeAct = (envs: BatchEnv, t: number): void => {
    copy(envs.observations, 0, actObservations, 0, numEnvs * width)
    copy(envs.observations, 0, observations, t * numEnvs * width, numEnvs * width)
    if (remembered === undefined) return
    const { memory, fresh, starts, freshRows } = remembered
    copy(memory, 0, act.feeds.memory, 0, memory.length)
    copy(fresh, 0, act.feeds.fresh, 0, numEnvs)
    copy(fresh, 0, freshRows, t * numEnvs, numEnvs)
    if (t % sequence === 0) copy(memory, 0, starts, (t / sequence) * memory.length, memory.length)
  }

  const afterAct = (envs: BatchEnv, t: number): void => {
    const base = t * numEnvs
    copy(act.results.actions, 0, actions, base * actionWidth, numEnvs * actionWidth)
    for (const { from, to } of told) copy(from, 0, to, base, numEnvs)
    if (remembered !== undefined) copy(act.results.nextMemory, 0, remembered.memory, 0, remembered.memory.length)
    envs.step(envActions)
    for (let env = 0; env < numEnvs; env++) {
      rewards[base + env] = envs.rewards[env]
      terminated[base + env] = envs.terminated[env]
      truncated[base + env] = envs.truncated[env]
      const ended = envs.terminated[env] !== 0 || envs.truncated[env] !== 0
      // Where both hold, the episode is over in the env's own terms and nothing is bootstrapped.
      if (ended && envs.terminated[env] === 0) {
        cut.add(base + env, envs.finalObservations, env * width, width, remembered?.memory, env * memorySize)
      }
      if (remembered !== undefined) remembered.fresh[env] = ended ? 1 : 0
      if (nextObservations !== undefined) {
        const seen = ended ? envs.finalObservations : envs.observations
        copy(seen, env * width, nextObservations, (base + env) * width, width)
      }
    }
  }

  /** Puts the cut rows from `from` on, at most numEnvs of them, into the act program. */
  const beforeCutValues = (from: number): number => {
    const count = Math.min(numEnvs, cut.count - from)
    const stride = width + memorySize
    for (let index = 0; index < count; index++) {
      copy(cut.contents, (from + index) * stride, actObservations, index * width, width)
      if (memorySize > 0) {
        copy(cut.contents, (from + index) * stride + width, act.feeds.memory, index * memorySize, memorySize)
      }
    }
    if (memorySize > 0) act.feeds.fresh.fill(0)
    return count
  }
  const afterCutValues = (from: number, count: number): void => {
    for (const { from: results, atCuts } of told) {
      for (let index = 0; index < count; index++) atCuts[cut.rows[from + index]] = results[index]
    }
  }

  const beforeLast = (envs: BatchEnv): void => {
    copy(envs.observations, 0, actObservations, 0, numEnvs * width)
    if (remembered === undefined) return
    copy(remembered.memory, 0, act.feeds.memory, 0, remembered.memory.length)
    copy(remembered.fresh, 0, act.feeds.fresh, 0, numEnvs)
  }

  return {
    steps,
    numEnvs,
    observationSize: width,
    columns: {
      observations,
      actions,
      ...Object.fromEntries(said.map((name, index) => [name, told[index].to])),
      ...Object.fromEntries(further),
      ...(remembered === undefined ? {} : { fresh: remembered.freshRows, memory: remembered.starts }),
    },
    rewards,
    terminated,
    truncated,
    atCuts: Object.fromEntries(said.map((name, index) => [name, told[index].atCuts])),
    cuts: () => cut.count,
    last: Object.fromEntries(said.map((name, index) => [name, told[index].last])),
    remembered,
    collect: function* (envs, iteration) {
      cut.clear()
      for (let t = 0; t < steps; t++) {
        drawNoise(iteration, t)
        beforeAct(envs, t)
        yield act
        afterAct(envs, t)
      }
      for (let from = 0; from < cut.count; from += numEnvs) {
        const count = beforeCutValues(from)
        yield act
        afterCutValues(from, count)
      }
      beforeLast(envs)
      yield act
      for (const { from, last } of told) copy(from, 0, last, 0, numEnvs)
    },
  }
}

/** For the few dozen numbers of a step, a loop is faster than making a view for `set`. */
export const copy = (from: TensorData, fromOffset: number, to: TensorData, toOffset: number, length: number): void => {
  for (let index = 0; index < length; index++) to[toOffset + index] = from[fromOffset + index]
}
