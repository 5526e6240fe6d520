import type { Activation } from "../graph/layers.ts"

/** A policy that consists of dense layers only, one after another; it can be exported as C. */
export interface DensePolicy {
  /**
   * The names of each layer's parameters, and its activation. If there are several names, their outputs are joined into one
   * layer.
   */
  readonly layers: ReadonlyArray<{
    readonly names: ReadonlyArray<string>
    readonly activation: Activation | "identity"
  }>
  /**
   * How to read the last layer. `sample_and_squash`: it outputs means and log deviations, and an action is tanh of a normal
   * draw.
   */
  readonly head?: "sample_and_squash"
  /** Whether actions from −1 to 1 are scaled to the env's bounds; otherwise they are clipped to them. */
  readonly scaled?: boolean
}
