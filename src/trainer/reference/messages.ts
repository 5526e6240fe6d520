/** Defines the messages between a trainer and the thread of its reference model. */
import type { MicroBatch } from "../batches/MicroBatch.ts"

/** The micro-batch whose tokens the thread computes. */
export type Question = MicroBatch

/** The log-probabilities of the micro-batch's tokens. */
export type Answer = Float32Array<ArrayBuffer>
