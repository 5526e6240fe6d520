import type { NamedArrays } from "../Algorithm.ts"
import { copyInto } from "../learnerState.ts"

/** How far a memory is filled: the first `used` of the `moments` that each env has room for, env after env. */
export interface Filled {
  readonly numEnvs: number
  readonly moments: number
  readonly used: number
}

type Data = NamedArrays[string]["data"]

/**
 * The part of a memory's array that is filled, `width` numbers a moment: an array for each env, `rows.0`, `rows.1` and so
 * on, which share the memory of the whole. So a checkpoint is as large as what was seen, and nothing is copied for it.
 */
export const filledPart = (name: string, data: Data, width: number, filled: Filled): NamedArrays => {
  const { numEnvs, moments, used } = filled
  return Object.fromEntries(
    Array.from({ length: numEnvs }, (_, env) => {
      const start = env * moments * width
      return [`${name}.${env}`, { shape: [used, width], data: data.subarray(start, start + used * width) }]
    }),
  )
}

/** Restores such a part; the rest of the array stays as it is. */
export const restoreFilled = (arrays: NamedArrays, name: string, into: Data, width: number, filled: Filled): void => {
  const { numEnvs, moments, used } = filled
  for (let env = 0; env < numEnvs; env++) {
    const start = env * moments * width
    copyInto(arrays, `${name}.${env}`, into.subarray(start, start + used * width))
  }
}
