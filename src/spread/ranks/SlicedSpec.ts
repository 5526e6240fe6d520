import type { Minibatches, ProgramSpec } from "../../tensor/graph/Program.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"

/**
 * Describes a program that computes one slice of a minibatch, whose rows it gathers itself. The program changes its state
 * only when the state is written.
 */
export interface SlicedSpec extends ProgramSpec {
  readonly state: Readonly<Record<string, { readonly tensor: Tensor }>>
  readonly minibatches: Omit<Minibatches, "continueWhile">
}
