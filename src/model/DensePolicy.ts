import type { Activation } from "../graph/layers.ts"

/** A policy that consists of dense layers only, one after another; it can be exported as C. */
export interface DensePolicy {
  /** The layers in order: the names of the linear layers whose outputs a layer joins, and the layer's activation. */
  readonly layers: ReadonlyArray<{
    readonly names: ReadonlyArray<string>
    readonly activation: Activation | "identity"
  }>
  /** `sample_and_squash`: the last layer outputs means and log deviations; an action is tanh of a normal sample. */
  readonly head?: "sample_and_squash"
  /** Whether actions from −1 to 1 are scaled to the env's bounds; otherwise they are clipped to them. */
  readonly scaled?: boolean
}
