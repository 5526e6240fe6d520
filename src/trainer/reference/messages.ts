/** Defines the messages between a trainer and the thread of its reference. */
import type { MicroBatch } from "../batches/MicroBatch.ts"

/** Asks for the log-probabilities of a micro-batch. */
export interface Question {
  readonly id: number
  readonly microBatch: MicroBatch
}

/** The log-probabilities, or why they cannot be computed. */
export type Answer =
  | { readonly id: number; readonly logProbabilities: Float32Array }
  | { readonly id: number; readonly failure: string }
