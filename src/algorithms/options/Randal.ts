// Written by `npm run settings` from the Schema and the comments on it.

import type { RndOptions } from "./Rnd.ts"
import type { AuxiliaryOptions } from "./shared.ts"

/** The settings of `Randal.make`. */
export interface RandalOptions extends RndOptions, AuxiliaryOptions {
  /**
   * The sizes of the hidden layers.
   * @default [128]
   */
  readonly hidden?: ReadonlyArray<number>
}
