/**
 * Describes programs by a text that serves as a key, so that a compiled form of equal programs can be found again.
 * `tensor/backend/wasm.ts` uses it.
 */
import { Sha256 } from "../../base/text/sha256.ts"
import { exactText } from "../../base/text/text.ts"
import type { ProgramSpec } from "./Program.ts"
import { type Tensor, type TensorData, topologicalOrder } from "./Tensor.ts"
import { rootsOf } from "./validate.ts"

/**
 * Returns a text that determines a group of programs completely: groups with equal texts compile to the same module.
 * The text includes the order in which tensors were made, and which programs share a tensor or an array, but nothing
 * that differs between two processes that make the same programs.
 *
 * @example
 * ```ts
 * descriptionOf({ act: spec }) // "input "x" f32 [4,3] ()\nunary tanh …"
 * ```
 */
export const descriptionOf = (specs: Readonly<Record<string, ProgramSpec>>): string => {
  const all = Object.values(specs)
  const tensors = topologicalOrder(all.flatMap((spec) => [...declared(spec), ...rootsOf(spec)]))
  const numbers = new Map(tensors.map((tensor, index) => [tensor, index]))
  const numberOf = (tensor: Tensor | undefined): number | undefined => tensor && numbers.get(tensor)
  const arrays = new Map<TensorData, number>()
  const contentOf = (data: TensorData): unknown => {
    const index = arrays.get(data)
    if (index !== undefined) return ["as", index]
    arrays.set(data, arrays.size)
    return bytesIn(data)
  }
  const lines = tensors.map(({ op, dtype, shape, inputs }) =>
    exactText([op.kind === "constant" ? ["constant", contentOf(op.data)] : op, dtype, shape, inputs.map(numberOf)]),
  )
  for (const [key, { name, inputs, state, outputs, minibatches }] of Object.entries(specs)) {
    const ofState = Object.entries(state).map(([name, { tensor, next, ...flags }]) => [
      name,
      numberOf(tensor),
      numberOf(next),
      flags,
    ])
    const minibatch = minibatches && { ...minibatches, continueWhile: numberOf(minibatches.continueWhile) }
    lines.push(exactText([key, name, entries(inputs, numberOf), ofState, entries(outputs, numberOf), minibatch]))
  }
  return lines.join("\n")
}

const declared = ({ inputs, state }: ProgramSpec): ReadonlyArray<Tensor> => [
  ...Object.values(inputs),
  ...Object.values(state).map(({ tensor }) => tensor),
]

const entries = <A, B>(record: Readonly<Record<string, A>>, of: (value: A) => B): ReadonlyArray<readonly [string, B]> =>
  Object.entries(record).map(([name, value]) => [name, of(value)])

/** Arrays of at most this many bytes are in the text itself; of larger ones, only the digest is. */
const mostBytes = 256

const bytesIn = (data: TensorData): ReadonlyArray<number> | string => {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  if (bytes.length <= mostBytes) return [...bytes]
  const hash = new Sha256()
  hash.update(bytes)
  return `${bytes.length} ${hash.hex()}`
}
