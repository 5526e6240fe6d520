/** Defines the messages between a trainer and the thread of its reference model. */
import type { MicroBatch } from "../batches/MicroBatch.ts"

/** Asks for the log-probabilities of a micro-batch's tokens. */
export interface Question {
  readonly id: number
  readonly microBatch: MicroBatch
}

/** Answers with the log-probabilities, or with the reason why they cannot be computed. */
export type Answer =
  | { readonly id: number; readonly logProbabilities: Float32Array }
  | { readonly id: number; readonly failure: string }
