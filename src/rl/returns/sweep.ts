/**
 * Computes the advantages of generalised advantage estimation (GAE) from the last time step to the first, in float32 or
 * float64. `gae.ts` calls `sweep`, which writes to the arrays `advantages` and `targets` and touches nothing else.
 *
 * A_t = (r_t − V_t) + (0 where terminated, γ V(final) where truncated, else γ V_{t+1} + γλ A_{t+1})
 *
 * V_t is the value of observation t, and V(final) the value of an episode's final observation. The flags `terminated`
 * and `truncated` select one of the three cases instead of multiplying by 0, so that a NaN after the end of an episode
 * has no effect.
 */
import type { Numbers, ReturnInputs } from "./inputs.ts"
import { simd, type Simd } from "./simd.ts"

/** The inputs and outputs of a sweep; all arrays have one element per time step and env. */
export interface SweepColumns<A extends Numbers> extends ReturnInputs<A> {
  /** The product γλ. */
  readonly decay: number
  readonly advantages: A
  /** If set, this array gets the value targets, advantage + value. */
  readonly targets?: A
}

/** Writes the advantages and, if `targets` is set, the value targets; in float32 if the arrays are, else in float64. */
export const sweep = (columns: SweepColumns<Numbers>): void =>
  isFloat32(columns) ? sweep32(columns) : sweep64(columns)

const isFloat32 = (columns: SweepColumns<Numbers>): columns is SweepColumns<Float32Array> =>
  columns.rewards instanceof Float32Array

const sweep64 = (columns: SweepColumns<Numbers>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues } = columns
  const { gamma, decay, advantages, targets } = columns
  const envs = lastValues.length
  const lastRow = rewards.length - envs
  for (let at = rewards.length - 1; at >= 0; at--) {
    let future = 0
    if (terminated[at] === 0) {
      if (truncated !== undefined && truncated[at] !== 0) {
        if (truncatedValues !== undefined) future = gamma * truncatedValues[at]
      } else if (at >= lastRow) future = gamma * lastValues[at - lastRow]
      else future = gamma * values[at + envs] + decay * advantages[at + envs]
    }
    advantages[at] = rewards[at] - values[at] + future
    if (targets !== undefined) targets[at] = advantages[at] + values[at]
  }
}

/** Computes in float32 without the SIMD module. It rounds each operation, so that both ways give the same bits. */
export const scalar32 = (columns: SweepColumns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, advantages, targets } = columns
  const { fround } = Math
  const gamma = fround(columns.gamma)
  const decay = fround(columns.decay)
  const envs = lastValues.length
  const lastRow = rewards.length - envs
  for (let at = rewards.length - 1; at >= 0; at--) {
    let future = 0
    if (terminated[at] === 0) {
      if (truncated !== undefined && truncated[at] !== 0) {
        if (truncatedValues !== undefined) future = fround(gamma * truncatedValues[at])
        // Adding 0 turns −0 into 0, as in the SIMD module, which adds γλ · 0 here.
      } else if (at >= lastRow) future = fround(gamma * lastValues[at - lastRow]) + 0
      else future = fround(fround(gamma * values[at + envs]) + fround(decay * advantages[at + envs]))
    }
    advantages[at] = fround(rewards[at] - values[at]) + future
    if (targets !== undefined) targets[at] = advantages[at] + values[at]
  }
}

/** Computes in float32, by the SIMD module if the engine can run it and a row has the four elements that it needs. */
export const sweep32 = (columns: SweepColumns<Float32Array>): void => {
  if (simd === undefined || columns.lastValues.length < 4) scalar32(columns)
  else vector32(simd, columns)
}

/** Rows are computed in groups of about this many elements, so that a group fits into the cache of a core. */
const elementsPerGroup = 16_384
/**
 * The number of unused bytes before a column. The module computes backwards, four at a time; its final four can begin up to
 * three elements before the column.
 */
const front = 16

/** Returns views of the module's memory: four columns of float32, then two of flags, with `capacity` elements each. */
const layOut = (memory: ArrayBuffer, capacity: number) => {
  const floats = (column: number) => new Float32Array(memory, column * (4 * capacity + front) + front, capacity)
  const flags = (column: number) =>
    new Uint8Array(memory, 4 * (4 * capacity + front) + column * (capacity + front) + front, capacity)
  return {
    rewards: floats(0),
    values: floats(1),
    advantages: floats(2),
    truncatedValues: floats(3),
    terminated: flags(0),
    truncated: flags(1),
  }
}

type Scratch = ReturnType<typeof layOut>
let scratch: Scratch | undefined

/** Returns columns of at least `elements` elements in the module's memory, which later calls reuse. */
const scratchOf = ({ memory }: Simd, elements: number): Scratch => {
  if (scratch !== undefined && scratch.rewards.length >= elements) return scratch
  const capacity = Math.ceil(elements / 16) * 16
  const bytes = 4 * (4 * capacity + front) + 2 * (capacity + front)
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / 65_536)
  if (missing > 0) memory.grow(missing)
  scratch = layOut(memory.buffer, capacity)
  return scratch
}

/**
 * Computes with the SIMD module, in groups of rows from the last to the first: copies a group's inputs to the module's
 * memory, runs the module, and copies the results back. A group also reads the first row of the group that follows it
 * in time.
 */
const vector32 = (module: Simd, columns: SweepColumns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, decay, advantages, targets } =
    columns
  const envs = lastValues.length
  const elements = envs * Math.max(1, Math.floor(elementsPerGroup / envs))
  const buffers = scratchOf(module, elements + envs)
  const sweep = truncated === undefined ? module.sweep : module.sweepTruncated
  if (truncated !== undefined && truncatedValues === undefined) buffers.truncatedValues.fill(0)

  for (let to = rewards.length; to > 0; to -= elements) {
    const from = Math.max(0, to - elements)
    const count = to - from
    buffers.rewards.set(rewards.subarray(from, to))
    buffers.terminated.set(terminated.subarray(from, to))
    if (truncated !== undefined) buffers.truncated.set(truncated.subarray(from, to))
    if (truncatedValues !== undefined) buffers.truncatedValues.set(truncatedValues.subarray(from, to))
    if (to === rewards.length) {
      buffers.values.set(values.subarray(from, to))
      buffers.values.set(lastValues, count)
      buffers.advantages.fill(0, count, count + envs)
    } else {
      buffers.values.set(values.subarray(from, to + envs))
      buffers.advantages.set(advantages.subarray(to, to + envs), count)
    }
    sweep(
      count - 4, // the module starts with the four elements at the end
      4 * envs,
      buffers.rewards.byteOffset,
      buffers.values.byteOffset,
      buffers.advantages.byteOffset,
      buffers.terminated.byteOffset,
      buffers.truncated.byteOffset,
      buffers.truncatedValues.byteOffset,
      gamma,
      decay,
    )
    advantages.set(buffers.advantages.subarray(0, count), from)
    // The module has replaced the rewards with the value targets.
    if (targets !== undefined) targets.set(buffers.rewards.subarray(0, count), from)
  }
}
