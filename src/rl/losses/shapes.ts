/** Defines and checks the tensors that losses take. The other files of this folder use it. */
import { fail, sameShape } from "../../tensor/graph/ops/core.ts"
import type { Shape, Tensor } from "../../tensor/graph/Tensor.ts"

/** The input tensors of a loss, by name. */
export type Tensors<Names extends string> = Readonly<Record<Names, Tensor>>

/** Throws a `GraphError` unless every tensor has the shape; the message names the loss and the wrong tensor. */
export const expectShape = (loss: string, shape: Shape, tensors: Tensors<string>): void => {
  for (const [name, tensor] of Object.entries(tensors)) {
    if (!sameShape(tensor.shape, shape)) fail(loss, `${name}: expected shape [${shape.join(", ")}]`, tensor)
  }
}
