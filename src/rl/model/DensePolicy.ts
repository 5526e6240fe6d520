import type { GraphActivation } from "../../tensor/graph/layers.ts"

/** Names the layers of a policy that has only dense layers; `rl/export/policyFiles.ts` can write it as C++ code. */
export interface DensePolicy {
  /** The layers in order. A layer joins the outputs of the linear layers `names` (mostly one) with the same input. */
  readonly layers: ReadonlyArray<{
    readonly names: ReadonlyArray<string>
    readonly activation: GraphActivation | "identity"
  }>
  /** `sample_and_squash`: the last layer outputs means and log deviations; an action is tanh of a normal sample. */
  readonly head?: "sample_and_squash"
  /** Whether actions from −1 to 1 are scaled to the env's bounds; otherwise they are clipped to them. */
  readonly scaled?: boolean
}
