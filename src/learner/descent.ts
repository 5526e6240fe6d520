import { gradients } from "../graph/gradients.ts"
import { clipGlobalNorm, type Optimiser, type Updated } from "../graph/optimisers.ts"
import type { Layout } from "../graph/Parameters.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** A network as its flat vector of parameters, and those by name. */
export interface Net {
  readonly layout: Layout
  readonly theta: Tensor
  readonly weights: Readonly<Record<string, Tensor>>
}

/** The next parameters by a loss: its gradients, scaled down to a global norm where there is one, to the optimiser. */
export const descend = (
  { layout, theta, weights }: Net,
  loss: Tensor,
  optimiser: Optimiser,
  maxGradNorm: number,
): Updated => {
  const { names } = layout
  const slopes = gradients(
    loss,
    names.map((key) => weights[key]),
  )
  const gradient = layout.flatten(Object.fromEntries(names.map((key, index) => [key, slopes[index]])))
  return optimiser.update(theta, maxGradNorm > 0 ? clipGlobalNorm(gradient, maxGradNorm) : gradient)
}
