import type { NamedArrays } from "../Algorithm.ts"
import { copyInto } from "../learnerState.ts"

/** Limits the size of memories of past steps, and saves and restores their arrays. */

const gibibyte = 2 ** 30

/** The largest memory in bytes. A system can promise more memory than it has, and kill the process that uses it. */
const largest = 16 * gibibyte

/** Returns the problem with a memory of this many bytes; undefined if it is small enough. */
export const tooLarge = (bytes: number): string | undefined =>
  bytes > largest
    ? `need ${Math.ceil(bytes / gibibyte)} GiB of memory; make it smaller, so that at most ${largest / gibibyte} GiB are needed`
    : undefined

/** Says how much of a memory is filled: the first `used` of the `capacity` steps of each env, one env after the other. */
export interface Filled {
  readonly numEnvs: number
  readonly capacity: number
  readonly used: number
}

type Data = NamedArrays[string]["data"]

/**
 * Returns the filled part of a memory's array, which has `width` numbers for each step: one array for each env, called
 * `rows.0`, `rows.1` and so on. They are views of the memory, so nothing is copied, and a checkpoint holds only the filled
 * part.
 */
export const filledPart = (name: string, data: Data, width: number, filled: Filled): NamedArrays => {
  const { numEnvs, capacity, used } = filled
  return Object.fromEntries(
    Array.from({ length: numEnvs }, (_, env) => {
      const start = env * capacity * width
      return [`${name}.${env}`, { shape: [used, width], data: data.subarray(start, start + used * width) }]
    }),
  )
}

/** Restores the part of an array that `filledPart` returned; the rest of the array keeps its numbers. */
export const restoreFilled = (arrays: NamedArrays, name: string, into: Data, width: number, filled: Filled): void => {
  const { numEnvs, capacity, used } = filled
  for (let env = 0; env < numEnvs; env++) {
    const start = env * capacity * width
    copyInto(arrays, `${name}.${env}`, into.subarray(start, start + used * width))
  }
}
