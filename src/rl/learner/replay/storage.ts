/** Helps memories of past steps (replay buffers): limits their size, saves their arrays, and stores images as bytes. */
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { copyInto } from "../learnerState.ts"

const gibibyte = 2 ** 30

/** The largest size of a memory, in bytes. Beyond it, the operating system may kill the process without an error. */
const limit = 16 * gibibyte

/** Returns the end of an error message for a memory of this many bytes; undefined if it is small enough. */
export const tooLarge = (bytes: number): string | undefined =>
  bytes > limit
    ? `need ${Math.ceil(bytes / gibibyte)} GiB of memory; make it smaller, so that at most ${limit / gibibyte} GiB are needed`
    : undefined

/** The filled part of a memory: the first `used` of the `capacity` steps of each env, one env after the other. */
export interface Filled {
  readonly numEnvs: number
  readonly capacity: number
  readonly used: number
}

type Data = NamedArrays[string]["data"]

/**
 * Returns the filled part of a memory's array, which has `width` numbers for each step: one array for each env, called
 * `rows.0`, `rows.1` and so on if `name` is `rows`. They are views of the memory, so nothing is copied.
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

/**
 * Stores many observations of one size. They are stored as bytes while all numbers are integers from 0 to 255 (as in
 * images and binary planes); with the first other number, all become float32. Bytes take a quarter of the memory and
 * lose nothing.
 */
export class Frames {
  private data: Uint8Array | Float32Array
  private readonly width: number
  private readonly count: number

  constructor(count: number, width: number) {
    this.count = count
    this.width = width
    this.data = new Uint8Array(count * width)
  }

  write(frame: number, from: Float32Array, offset: number): void {
    const { width } = this
    const base = frame * width
    for (let at = 0; at < width; at++) {
      const value = from[offset + at]
      this.data[base + at] = value
      if (this.data[base + at] !== value && this.data instanceof Uint8Array) {
        this.data = Float32Array.from(this.data)
        this.data[base + at] = value
      }
    }
  }

  read(frame: number, into: Float32Array, offset: number): void {
    const { width, data } = this
    const base = frame * width
    for (let at = 0; at < width; at++) into[offset + at] = data[base + at]
  }

  state(name: string, filled: Filled): NamedArrays {
    return filledPart(name, this.data, this.width, filled)
  }

  restore(arrays: NamedArrays, name: string, filled: Filled): void {
    const isFloat = (arrays[name] ?? arrays[`${name}.0`])?.data instanceof Float32Array
    this.data = isFloat ? new Float32Array(this.count * this.width) : new Uint8Array(this.count * this.width)
    restoreFilled(arrays, name, this.data, this.width, filled)
  }
}
