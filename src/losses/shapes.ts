import { fail, sameShape } from "../graph/ops/core.ts"
import type { Shape, Tensor } from "../graph/Tensor.ts"

/** Throws a `GraphError` unless every tensor has the shape; the message names the loss and the wrong tensor. */
export const expectShape = (loss: string, shape: Shape, tensors: Readonly<Record<string, Tensor>>): void => {
  for (const [name, tensor] of Object.entries(tensors)) {
    if (!sameShape(tensor.shape, shape)) fail(loss, `${name}: expected shape [${shape.join(", ")}]`, tensor)
  }
}
