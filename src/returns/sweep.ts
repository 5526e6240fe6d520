/**
 * The backward sweep of `gae`: one row of time after another, from the last, in the arithmetic of its arrays' kind.
 *
 *     A_t = (r_t − V_t) + (0 where terminated, γ V(final) where truncated, else γ V_{t+1} + γλ A_{t+1})
 *
 * Flags choose, they are not multiplied with: what lies beyond the end of an episode counts for nothing, NaN or not.
 */
import type { Numbers } from "./inputs.ts"
import { simd, type Simd } from "./simd.ts"

export interface Columns<A extends Numbers> {
  readonly rewards: A
  readonly values: A
  readonly lastValues: A
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array | undefined
  readonly truncatedValues: A | undefined
  readonly gamma: number
  /** γλ */
  readonly decay: number
  readonly advantages: A
  /** Where advantage + value goes, if that is wanted. */
  readonly targets: A | undefined
}

/** In doubles. */
export const sweep64 = (columns: Columns<Float64Array>): void => {
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

/** In floats, each operation rounded: the same bits as four at a time. */
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

export const sweep32 = (columns: Columns<Float32Array>): void => {
  if (simd === undefined || columns.lastValues.length < 4) scalar32(columns)
  else vector32(simd, columns)
}

/** Rows are taken in turns of about this many elements: what a turn needs of memory stays in a core's own cache. */
const elementsATurn = 16_384
/** Room in front of a column, in bytes, for the elements that the last four reach beyond it. */
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

/** Columns of at least so many elements in the module's memory, kept from one call to the next. */
const scratchOf = ({ memory }: Simd, elements: number): Scratch => {
  if (scratch !== undefined && scratch.rewards.length >= elements) return scratch
  const capacity = Math.ceil(elements / 16) * 16
  const bytes = 4 * (4 * capacity + front) + 2 * (capacity + front)
  const missing = Math.ceil((bytes - memory.buffer.byteLength) / 65_536)
  if (missing > 0) memory.grow(missing)
  scratch = layOut(memory.buffer, capacity)
  return scratch
}

/** Rows into the module's memory, the sweep over them there, and their advantages out of it; the last rows first. */
const vector32 = (module: Simd, columns: Columns<Float32Array>): void => {
  const { rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, decay, advantages, targets } =
    columns
  const envs = lastValues.length
  const elements = envs * Math.max(1, Math.floor(elementsATurn / envs))
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
