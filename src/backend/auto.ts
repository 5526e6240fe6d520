import { Effect, Layer } from "effect"
import type { ProgramSpec } from "../graph/Program.ts"
import { sizeOf, type Tensor, topologicalOrder } from "../graph/Tensor.ts"
import { Backend } from "./Backend.ts"

/**
 * The backend that picks a device for each graph: `wasm` for small ones, where a session run costs more than its
 * arithmetic, the session for the others and for what `wasm` cannot compile.
 *
 * The choice is made by a cost model, not by a stopwatch: its coefficients were measured once (`npm run bench`), so the
 * same graph gets the same device on every machine and a run stays reproducible from its seed.
 */

/** Microseconds that a run of the graph is expected to take on each device. */
export interface Cost {
  readonly wasm: number
  readonly session: number
}

/** Multiply-adds of one graph run. */
export const multiplyAdds = (roots: ReadonlyArray<Tensor>): number =>
  topologicalOrder(roots).reduce((total, tensor) => total + multiplyAddsOf(tensor), 0)

const multiplyAddsOf = (tensor: Tensor): number => {
  const { op, inputs, shape } = tensor
  switch (op.kind) {
    case "matmul": {
      const a = inputs[0].shape
      return sizeOf(shape) * a[a.length - (op.transposeA ? 2 : 1)]
    }
    case "conv2d":
      return sizeOf(shape) * (sizeOf(inputs[1].shape) / inputs[1].shape[0])
    case "conv2dInputGrad":
      return sizeOf(inputs[0].shape) * (sizeOf(inputs[1].shape) / inputs[1].shape[0])
    case "conv2dWeightGrad":
      return sizeOf(inputs[1].shape) * (sizeOf(shape) / shape[0])
    default:
      return 0
  }
}
