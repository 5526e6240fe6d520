/**
 * Implements the backward sweep of `gae`, from the last time step to the first, in float32 or float64 arithmetic.
 *
 *     A_t = (r_t − V_t) + (0 where terminated, γ V(final) where truncated, else γ V_{t+1} + γλ A_{t+1})
 *
 * Flags select values instead of multiplying them, so that a NaN after the end of an episode has no effect.
 */
import type { Numbers, ReturnInputs } from "./inputs.ts"
import { simd, type Simd } from "./simd.ts"

export interface Columns<A extends Numbers> extends ReturnInputs<A> {
  /** The product γλ. */
  readonly decay: number
  readonly advantages: A
  /** If set, this array gets advantage + value. */
  readonly targets?: A
}

/** Sweeps over the columns in the arithmetic of their arrays. */
export const sweep = (columns: Columns<Numbers>): void => (isFloat32(columns) ? sweep32(columns) : sweep64(columns))

const isFloat32 = (columns: Columns<Numbers>): columns is Columns<Float32Array> =>
  columns.rewards instanceof Float32Array

const sweep64 = (columns: Columns<Numbers>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues } = columns
  const { gamma, decay, advantages, targets } = columns
  const envs = lastValues.length
  const lastRow = rewards.length - envs
  for (let at = rewards.length - 1; at >= 0; at--) {
    let later = 0
    if (terminated[at] === 0) {
      if (truncated !== undefined && truncated[at] !== 0) {
        if (truncatedValues !== undefined) later = gamma * truncatedValues[at]
      } else if (at >= lastRow) later = gamma * lastValues[at - lastRow]
      else later = gamma * values[at + envs] + decay * advantages[at + envs]
    }
    advantages[at] = rewards[at] - values[at] + later
    if (targets !== undefined) targets[at] = advantages[at] + values[at]
  }
}

/** Sweeps in float32, rounding each operation, so that results have the same bits as those of the SIMD module. */
export const scalar32 = (columns: Columns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, advantages, targets } = columns
  const { fround } = Math
  const gamma = fround(columns.gamma)
  const decay = fround(columns.decay)
  const envs = lastValues.length
  const lastRow = rewards.length - envs
  for (let at = rewards.length - 1; at >= 0; at--) {
    let later = 0
    if (terminated[at] === 0) {
      if (truncated !== undefined && truncated[at] !== 0) {
        if (truncatedValues !== undefined) later = fround(gamma * truncatedValues[at])
      } else if (at >= lastRow) later = fround(gamma * lastValues[at - lastRow]) + 0
      else later = fround(fround(gamma * values[at + envs]) + fround(decay * advantages[at + envs]))
    }
    advantages[at] = fround(rewards[at] - values[at]) + later
    if (targets !== undefined) targets[at] = advantages[at] + values[at]
  }
}

/** Sweeps in float32 by the SIMD module if the engine can run it; a row has to have at least four elements. */
export const sweep32 = (columns: Columns<Float32Array>): void => {
  if (simd === undefined || columns.lastValues.length < 4) scalar32(columns)
  else vector32(simd, columns)
}

/** Rows are swept in groups of about this many elements, so that a group fits into the cache of a core. */
const elementsPerGroup = 16_384
/** The number of unused bytes before a column: the last four elements of a sweep can begin before it. */
const front = 16

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

/** Copies groups of rows into the module's memory, sweeps there, and copies the advantages back; the last group first. */
const vector32 = (module: Simd, columns: Columns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, decay, advantages, targets } =
    columns
  const envs = lastValues.length
  const elements = envs * Math.max(1, Math.floor(elementsPerGroup / envs))
  const own = scratchOf(module, elements + envs)
  const sweep = truncated === undefined ? module.sweep : module.sweepCut
  if (truncated !== undefined && truncatedValues === undefined) own.truncatedValues.fill(0)

  for (let to = rewards.length; to > 0; to -= elements) {
    const from = Math.max(0, to - elements)
    const count = to - from
    own.rewards.set(rewards.subarray(from, to))
    own.terminated.set(terminated.subarray(from, to))
    if (truncated !== undefined) own.truncated.set(truncated.subarray(from, to))
    if (truncatedValues !== undefined) own.truncatedValues.set(truncatedValues.subarray(from, to))
    if (to === rewards.length) {
      own.values.set(values.subarray(from, to))
      own.values.set(lastValues, count)
      own.advantages.fill(0, count, count + envs)
    } else {
      own.values.set(values.subarray(from, to + envs))
      own.advantages.set(advantages.subarray(to, to + envs), count)
    }
    sweep(
      count - 4,
      4 * envs,
      own.rewards.byteOffset,
      own.values.byteOffset,
      own.advantages.byteOffset,
      own.terminated.byteOffset,
      own.truncated.byteOffset,
      own.truncatedValues.byteOffset,
      gamma,
      decay,
    )
    advantages.set(own.advantages.subarray(0, count), from)
    if (targets !== undefined) targets.set(own.rewards.subarray(0, count), from)
  }
}
