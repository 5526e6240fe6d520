// Written by `npm run settings` from the Schema and the comments on it.

import type { NetworkOptions, PlanningOptions } from "./shared.ts"

/** The settings of `Bc.make`. */
export interface BcOptions extends NetworkOptions, PlanningOptions {
  /**
   * The learning rate of Adam.
   * @default 0.001
   */
  readonly learningRate?: number
  /**
   * The course of the learning rate: `linear` lowers it to 0 over the run, `constant` keeps it.
   * @default "constant"
   */
  readonly schedule?: "constant" | "linear"
  /**
   * The number of demonstrated steps that an update learns from.
   * @default 64
   */
  readonly batchSize?: number
  /**
   * The weight of the policy's entropy in the loss; more keeps the policy less certain than the demonstrations
   * alone do.
   * @default 0
   */
  readonly entropyCoefficient?: number
  /**
   * The global norm that gradients are scaled down to; 0 does not limit them.
   * @default 0
   */
  readonly maxGradNorm?: number
}
