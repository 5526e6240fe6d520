/** Defines stages: groups of a program that run one after another, whole or in bands of rows. */
import type { FusedGroup } from "./fuse.ts"
import type { Node } from "./ir.ts"

/** Groups that run one after another: once or, with `bands`, for each band of rows. */
export interface Stage {
  readonly groups: ReadonlyArray<FusedGroup>
  readonly bands: Bands | undefined
}

export interface Bands {
  /** The number of rows of the batch, and of a band. The last band can have fewer. */
  readonly rows: number
  readonly size: number
  /** The arrays that hold the rows of one band only. */
  readonly local: ReadonlySet<Node>
  /** The nodes that are sums over all rows. */
  readonly sums: ReadonlySet<Node>
}
