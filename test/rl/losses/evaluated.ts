import * as Reference from "../../../src/tensor/backend/reference.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"

/** The numbers of a tensor without inputs. */
export const evaluated = (tensor: Tensor): ReadonlyArray<number> => {
  const program = compileWith(Reference.layer, { name: "loss", inputs: {}, state: {}, outputs: { tensor } })
  program.runSync?.()
  return Array.from(program.results.tensor)
}

/** The numbers of the gradient of a scalar by a tensor. */
export const gradientOf = (loss: Tensor, by: Tensor): ReadonlyArray<number> => evaluated(gradients(loss, [by])[0])
