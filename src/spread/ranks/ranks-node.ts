/**
 * Implements `TrainingRanks`: waits for ranks at a port, and starts the process of each rank, on this machine or on the
 * workers of a cluster. A rank whose process ends during the training is started again.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * const ranks = Node.trainingRanks({ threads: 1 })
 * ```
 */
import { Clock, Effect, Layer, Schema, type Scope } from "effect"
import { type WorkerError, isLost } from "../workers/WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import { startChild } from "../workers/process-node.ts"
import { programBeside } from "../../base/files/programBeside.ts"
import { makeHub } from "./hub.ts"
import { alone } from "./Ranks.ts"
import { SliceTask } from "./SliceTask.ts"
import { listen } from "./tcp-node.ts"
import { TrainingRanks } from "./TrainingRanks.ts"

/** Starts a rank until the scope closes; the Effect that it returns waits until the rank has ended by itself. */
export type StartRank = (task: SliceTask) => Effect.Effect<Effect.Effect<void, WorkerError>, WorkerError, Scope.Scope>

const program = programBeside(import.meta.url, "rank-node")

/** Starts a rank as a process of this machine. */
export const startHere: StartRank = (task) =>
  startChild({
    rank: task.rank,
    program,
    task: Schema.encodeSync(jsonText(SliceTask))(task),
  })

/** The number of starts that soon fail after which a rank is not started again. */
const mostStarts = 5
const soonMillis = 60_000

/** Keeps a rank running: starts it again when it ends. */
const keep = Effect.fnUntraced(function* (start: StartRank, task: SliceTask) {
  let starts = 0
  for (;;) {
    const begun = yield* Clock.currentTimeMillis
    const problem = yield* Effect.scoped(Effect.flatten(start(task))).pipe(
      Effect.as(undefined),
      Effect.catch((error) =>
        isLost(error) ? Effect.as(Effect.logWarning(error.message), undefined) : Effect.succeed(error.message),
      ),
    )
    const wasSoon = (yield* Clock.currentTimeMillis) - begun < soonMillis
    starts = wasSoon ? starts + 1 : 1
    if (problem !== undefined || starts >= mostStarts) {
      const reason = problem ?? `it ended ${starts} times`
      return yield* Effect.logWarning(`rank ${task.rank} is given up, and the training goes on without it: ${reason}`)
    }
    yield* Effect.sleep("1 second")
  }
})

/** Makes the Layer of ranks that `start` starts. The ranks connect to this process at `host`. */
export const ranksBy = ({
  start,
  host,
  threads = 1,
}: {
  readonly start: StartRank
  readonly host: Effect.Effect<string, { readonly message: string }>
  /** The number of threads that compute in each rank. It must equal the master's. */
  readonly threads?: number
}): Layer.Layer<TrainingRanks> =>
  Layer.succeed(TrainingRanks, {
    start: Effect.fnUntraced(
      function* (ranks) {
        const hub = yield* makeHub()
        const place = yield* listen(yield* host, (rank, channel) =>
          Effect.catch(hub.serve(rank, channel), ({ message }) =>
            Effect.logWarning(`rank ${rank} was lost: ${message}; this process computes its slices`),
          ),
        )
        yield* Effect.forEach(
          Array.from({ length: ranks - 1 }, (_, at) => at + 1),
          (rank) => Effect.forkScoped(keep(start, { rank, threads, place })),
        )
        return hub.ranks
      },
      Effect.catch(({ message }) =>
        Effect.as(Effect.logWarning(`ranks: ${message}; this process computes all slices`), alone),
      ),
    ),
  })

/** Provides ranks that are processes of this machine. */
export const layer = ({ threads }: { readonly threads?: number } = {}): Layer.Layer<TrainingRanks> =>
  ranksBy({ start: startHere, host: Effect.succeed("127.0.0.1"), ...(threads === undefined ? {} : { threads }) })
