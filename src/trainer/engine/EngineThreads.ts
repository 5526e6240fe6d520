/**
 * Declares the service that starts a trainer's engine in a thread of its own, so that it generates on another core while
 * the trainer computes; `thread-node.ts` implements it. The engine works until the scope that started it closes.
 *
 * @example
 * ```ts
 * const threads = yield* EngineThreads
 * const { engine, untilLost } = yield* threads.start(engineTask)
 * const answer = engine.generate({ model: "run_a", promptIds: [1, 17, 42] })
 * yield* Effect.raceFirst(answer, untilLost)
 * ```
 */
import { Context, type Effect, Schema, type Scope } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { EngineService } from "../../decoder/inference/Engine.ts"
import type { TrainerError } from "../TrainerError.ts"
import { MultiRunConfig } from "../config/MultiRunConfig.ts"

const { model, trainer, inference, seed } = MultiRunConfig.fields

/** The task of an engine's thread: all settings that it needs. */
export const EngineTask = Schema.Struct({
  model,
  trainer,
  inference,
  seed,
  /** The folder that the path of the model starts from. */
  baseDir: Schema.String,
  /** The name of the base model in the engine. */
  name: Schema.String,
})
export type EngineTask = typeof EngineTask.Type

/** An engine in another thread. */
interface EngineThread {
  /** All requests that are open when the thread ends, and all later ones, fail with `closed`. */
  readonly engine: EngineService
  /** Waits until the thread has ended by itself, and fails with the reason. */
  readonly untilLost: Effect.Effect<never, WorkerError>
}

/** Starts engines in threads. `Node.trainerThreads` is the Layer for Node. */
export class EngineThreads extends Context.Service<
  EngineThreads,
  {
    /** Starts an engine, and ends it when the scope closes. Fails if the engine cannot be made, or its thread ends. */
    readonly start: (task: EngineTask) => Effect.Effect<EngineThread, TrainerError | WorkerError, Scope.Scope>
  }
>()("effect-rl/multirun/EngineThreads") {}
