/** Copies the numbers of programs to and from the bytes that ranks exchange. */
import type { Program } from "../../tensor/backend/Backend.ts"
import { indicesFeed } from "../../tensor/graph/Program.ts"
import type { TensorData } from "../../tensor/graph/Tensor.ts"
import type { SlicedSpec } from "./SlicedSpec.ts"

/** Returns the bytes of an array, without a copy. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: TensorData): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Returns the input arrays of a program that hold the rows of an update. */
export const rowFeeds = ({ minibatches }: SlicedSpec, { feeds }: Program): ReadonlyArray<TensorData> =>
  minibatches.gathered.map((name) => feeds[name])

/** Returns the other input arrays of a program, without the indices of the rows. */
export const otherFeeds = ({ minibatches, inputs }: SlicedSpec, { feeds }: Program): ReadonlyArray<TensorData> =>
  Object.keys(inputs).flatMap((name) =>
    name === indicesFeed || minibatches.gathered.includes(name) ? [] : [feeds[name]],
  )

/** Copies bytes into arrays, one after another. Throws if there are more or fewer bytes than the arrays hold. */
export const fill = (bytes: Uint8Array, arrays: ReadonlyArray<TensorData>): void => {
  const expected = arrays.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (bytes.length !== expected) throw new RangeError(`expected a message of ${expected} bytes, found ${bytes.length}`)
  let at = 0
  for (const array of arrays) {
    bytesOf(array).set(bytes.subarray(at, at + array.byteLength))
    at += array.byteLength
  }
}

/** Copies the results of a program, one after another, into an array. */
export const copyResults = ({ results }: Program, into: Float32Array): void => {
  let at = 0
  for (const name in results) {
    into.set(results[name], at)
    at += results[name].length
  }
}

/** Returns how many numbers the results of a program have. */
export const resultCount = ({ results }: Program): number =>
  Object.values(results).reduce((sum, { length }) => sum + length, 0)
