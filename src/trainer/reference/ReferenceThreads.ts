/**
 * Declares the service that starts a thread for the reference model. The KL term of an objective needs the log-probabilities
 * of this model; the thread computes them on another core while the trainer computes gradients. The results are the same
 * bits, because the thread runs the trainer's program on the same micro-batches. `thread-node.ts` implements the service.
 *
 * @example
 * ```ts
 * const threads = yield* ReferenceThreads
 * const thread = yield* threads.start(referenceTask)
 * const answer = yield* thread.compute(microBatch)
 * const logProbabilities = yield* answer
 * ```
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { MicroBatch } from "../batches/MicroBatch.ts"
import { MultiRunConfig } from "../config/MultiRunConfig.ts"

const { model, trainer, seed } = MultiRunConfig.fields

/** The task of the reference model's thread: all settings that it needs. */
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
   * Sends a micro-batch to the thread, and returns the Effect that waits for the log-probabilities of its tokens. The thread
   * computes micro-batches in order. If it fails or is lost, the trainer can compute the same itself.
   */
  readonly compute: (microBatch: MicroBatch) => Effect.Effect<Effect.Effect<Float32Array, WorkerError>>
}

/** Starts threads for references. `Node.trainerThreads` is the Layer for Node. */
export class ReferenceThreads extends Context.Service<
  ReferenceThreads,
  {
    /** Starts a thread, and ends it when the scope closes. A failure to start becomes a failure of each computation. */
    readonly start: (task: ReferenceTask) => Effect.Effect<ReferenceThread, never, Scope.Scope>
  }
>()("effect-rl/multirun/ReferenceThreads") {}
