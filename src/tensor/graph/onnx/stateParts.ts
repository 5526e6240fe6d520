/** Finds the parts of a program's states, such as the weights of each layer in the flat vector of all weights. */
import { Record } from "effect"
import { fail } from "../ops/core.ts"
import { state } from "../ops.ts"
import type { ProgramSpec } from "../Program.ts"
import { replaced } from "../replaced.ts"
import { type Shape, sizeOf, type Tensor } from "../Tensor.ts"
import type { Initializer } from "./model.ts"

/** A range of a state's numbers, in a shape of its own. */
interface StatePart {
  /** The part as a state, whose name has dots, unlike other names in a model: `theta.256.64x2`. */
  readonly tensor: Tensor
  readonly name: string
  /** The whole state. */
  readonly whole: Tensor
  readonly wholeName: string
  readonly start: number
}

/**
 * Makes programs read the parts of their states as states of their own. All programs that are changed by one
 * `partition` read the same tensors. `filled` returns the parts with their numbers, which it takes from the whole
 * states.
 */
export const partition = () => {
  const parts = new Map<string, StatePart>()
  const partOf = (whole: Tensor, wholeName: string, start: number, shape: Shape): StatePart => {
    const name = `${wholeName}.${start}.${shape.join("x")}`
    const part = parts.get(name) ?? { tensor: state(name, shape), name, whole, wholeName, start }
    parts.set(name, part)
    return part
  }
  /** Returns the part of a state that a tensor equals: the whole state, a slice of a flat part, or a reshaped part. */
  const partIn = ({ op, inputs, shape }: Tensor, source: StatePart | undefined): StatePart | undefined => {
    if (source === undefined) return undefined
    const { whole, wholeName, start } = source
    if (op.kind === "reshape") return partOf(whole, wholeName, start, shape)
    const isRange = op.kind === "slice" && inputs[0].shape.length === 1
    return isRange ? partOf(whole, wholeName, start + op.starts[0], shape) : undefined
  }
  return {
    inParts: ({ name, inputs, outputs }: ProgramSpec): ProgramSpec => {
      const found = new Map<Tensor, StatePart>()
      const replacementOf = replaced(Object.values(outputs), (tensor) => {
        const { op, shape } = tensor
        const part =
          op.kind === "state" ? partOf(tensor, op.name, 0, shape) : partIn(tensor, found.get(tensor.inputs[0]))
        if (part !== undefined) found.set(tensor, part)
        return part?.tensor
      })
      return { name, inputs, state: {}, outputs: Record.map(outputs, replacementOf) }
    },
    filled: (numbers: Readonly<Record<string, Float32Array>>): ReadonlyArray<Initializer> =>
      Array.from(parts.values(), ({ name, tensor: { shape }, whole, wholeName, start }) => {
        const all = numbers[wholeName]
        if (all === undefined) return fail("export", `the weights for state "${wholeName}" are missing`, whole)
        if (all.length !== sizeOf(whole.shape))
          return fail("export", `state "${wholeName}": found ${all.length} weights`, whole)
        return { name, dtype: "f32", shape, data: all.subarray(start, start + sizeOf(shape)) }
      }),
  }
}
