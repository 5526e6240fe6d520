import { Effect } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { isLoss } from "./RankProcesses.ts"

/** The number of times in a row that a training is started again without having completed a step. */
const mostRestarts = 5

/**
 * Runs a training, and starts it again from the checkpoints of its runs when a rank or the engine's thread is lost. Gives up
 * if this happens again and again without a completed step. Any other error ends the training at once.
 */
export const resumeLost = Effect.fnUntraced(function* <A, E extends { readonly message: string }, R>(
  training: Effect.Effect<A, E, R>,
  stepsSoFar: () => number,
): Effect.fn.Return<A, E | WorkerError, R> {
  let most = stepsSoFar()
  let restarts = 0
  for (;;) {
    const outcome = yield* Effect.map(training, (value) => ({ value })).pipe(
      Effect.catchIf(isLoss, ({ message }) => Effect.succeed({ message })),
    )
    if ("value" in outcome) return outcome.value
    const steps = stepsSoFar()
    restarts = steps > most ? 1 : restarts + 1
    most = Math.max(most, steps)
    if (restarts > mostRestarts) {
      const problem = `that was loss ${restarts} without a step in between: look at run.log for the reason`
      return yield* WorkerError.lost(`${outcome.message}; ${problem}`)
    }
    yield* Effect.logWarning(`${outcome.message}; all ranks start again from the last checkpoints`)
  }
})
