/**
 * Declares the service that starts a thread which computes the log-probabilities of the reference model, with which the KL
 * term of an objective compares, so that another core computes them while the trainer computes gradients; `thread-node.ts`
 * implements it. The thread runs the program that the trainer would run, on the same micro-batches, so the bits are the same.
 *
 * @example
 * ```ts
 * const threads = yield* ReferenceThreads
 * const thread = yield* threads.start(task)
 * const answer = yield* thread.compute(microBatch)
 * const logProbabilities = yield* answer
 * ```
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { WorkerLost } from "../../spread/workers/WorkerError.ts"
import type { MicroBatch } from "../batches/MicroBatch.ts"
import { MultiRunConfig } from "../config/MultiRunConfig.ts"

const { model, trainer, seed } = MultiRunConfig.fields

/** Everything that the thread of a reference has to know. */
export const ReferenceTask = Schema.Struct({
  model,
  trainer,
  seed,
  /** The folder that the path of the model starts from. */
  baseDir: Schema.String,
  /** The device that the trainer's program runs on, such as `wasm`. */
  device: Schema.String,
})
export type ReferenceTask = typeof ReferenceTask.Type

/** A reference model in another thread. */
export interface ReferenceThread {
  /**
   * Sends a micro-batch to the thread, which computes one after another, and returns the Effect that waits for the
   * log-probabilities of its tokens. If the thread is lost, or cannot compute them, the trainer can compute the same itself.
   */
  readonly compute: (microBatch: MicroBatch) => Effect.Effect<Effect.Effect<Float32Array, WorkerLost>>
}

/** Starts threads for references. `Node.trainerThreads` is the Layer for Node. */
export class ReferenceThreads extends Context.Service<
  ReferenceThreads,
  {
    /** Starts a thread, and ends it when the scope closes. If that fails, so does what is computed. */
    readonly start: (task: ReferenceTask) => Effect.Effect<ReferenceThread, never, Scope.Scope>
  }
>()("effect-rl/multirun/ReferenceThreads") {}
