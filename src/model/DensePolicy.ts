import type { Activation } from "../graph/layers.ts"

/** Dense layers one after another: what each is called among the weights, and what follows it. */
export interface DensePolicy {
  /** A layer of several names is those side by side. */
  readonly layers: ReadonlyArray<{
    readonly names: ReadonlyArray<string>
    readonly activation: Activation | "identity"
  }>
  /** `sample_and_squash`: the last layer is a mean and as many deviations, and actions are tanh of a draw. */
  readonly head?: "sample_and_squash"
  /** Whether actions from −1 to 1 are stretched onto the env's bounds; they are cut off there otherwise. */
  readonly scaled?: boolean
}
