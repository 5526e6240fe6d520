/** Defines trunks, the parts of networks before their heads, and the forms of their parameters and weights. */
import type { Declaration } from "../../../tensor/graph/Parameters.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"

/** The tensors of weights by the names of their parameters. */
export type Weights = Readonly<Record<string, Tensor>>
/** Parameters by name: the shape and the initial values of each. */
export type Declarations = Readonly<Record<string, Declaration>>

/** The part of a network before its heads, from observations [rows, size] to features [rows, outputs]. */
export interface Trunk {
  readonly parameters: Declarations
  readonly outputs: number
  /** The number of dense layers. Their names end with 0, 1, …, so a head that follows can be named with this number. */
  readonly depth: number
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
}
