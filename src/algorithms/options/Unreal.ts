// Written by `npm run settings` from the Schema and the comments on it.

import type { A2cOptions } from "./A2c.ts"
import type { AuxiliaryOptions } from "./shared.ts"

/** The settings of `Unreal.make`. */
export interface UnrealOptions extends A2cOptions, AuxiliaryOptions {
  /**
   * The sizes of the hidden layers.
   * @default [128]
   */
  readonly hidden?: ReadonlyArray<number>
  /**
   * The number of env steps that each env takes between two updates.
   * @default 20
   */
  readonly nsteps?: number
}
