/**
 * Declares the service that starts the processes of all ranks except the master; `processes-node.ts` implements it on this
 * machine, and `placement/rankJobs-node.ts` on the workers of a cluster. A process gets a `RankTask`, and trains until the
 * scope that started it closes.
 *
 * @example
 * ```ts
 * const processes = yield* RankProcesses
 * const untilItEnds = yield* processes.start(rankTask)
 * yield* Effect.raceFirst(training, untilItEnds)
 * ```
 */
import { Context, type Effect, type Scope } from "effect"
import { isLost, type WorkerError } from "../../spread/workers/WorkerError.ts"
import type { RankTask } from "./RankTask.ts"
import { TrainerError } from "../TrainerError.ts"

/** Tells whether an error means that a rank, or the thread of the engine, was lost. */
export const isLoss = (error: unknown): boolean =>
  isLost(error) || (error instanceof TrainerError && error.reason === "absent")

/** Starts ranks. `Node.rankProcesses` is the Layer for Node. */
export class RankProcesses extends Context.Service<
  RankProcesses,
  {
    /**
     * Starts a rank as soon as there is a free slot for it, and ends it when the scope closes. Returns the Effect that lets
     * the rank begin its work and waits until it has ended by itself: run it when all ranks are started. What the rank writes
     * to its standard error is logged.
     */
    readonly start: (task: RankTask) => Effect.Effect<Effect.Effect<never, WorkerError>, WorkerError, Scope.Scope>
  }
>()("effect-rl/multirun/RankProcesses") {}
