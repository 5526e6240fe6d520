/**
 * Plays chunks of evaluations for other machines. A worker opens the data set, the models and the agents of an evaluation
 * for its first chunk, and keeps them for the next ones.
 */
import { Effect, RcMap, type Scope } from "effect"
import { display } from "../config/Config.ts"
import { firstDifference } from "../config/difference.ts"
import { DispatchError, type Handler, handler } from "../cluster/Dispatcher.ts"
import type * as Lms from "../lm/Lms.ts"
import { chunkJob, type ChunkPayload } from "./chunks.ts"
import { prepare } from "./Evaluations.ts"
import { playChunk } from "./execute.ts"

/** The time for which an opened evaluation is kept after its last chunk. */
const keepOpen = "1 minute"

/** Makes the code of a worker that plays chunks of evaluations. */
export const evaluationHandler: Effect.Effect<Handler, never, Lms.Needs | Scope.Scope> = Effect.gen(function* () {
  const needs = yield* Effect.context<Lms.Needs>()
  // The first chunk of a run brings the config, so the key of the map is the config as text.
  const opened = yield* RcMap.make({
    lookup: (config: string) => Effect.provideContext(prepare(JSON.parse(config), { source: "the evaluation" }), needs),
    idleTimeToLive: keepOpen,
  })
  const play = Effect.fnUntraced(function* (payload: ChunkPayload) {
    const { config, identity, agent } = payload
    const text = JSON.stringify(config)
    const prepared = yield* RcMap.get(opened, text).pipe(
      // What is missing may be there for the next chunk, but the map would keep the failure.
      Effect.tapError(() => RcMap.invalidate(opened, text)),
      Effect.mapError(({ message }) => problem(message)),
    )
    const difference = firstDifference(prepared.identity, identity)
    if (difference !== undefined) {
      const { key, now, then } = difference
      return yield* problem(
        `${key}: expected ${display(then)} as where the evaluation was started, found ${display(now)}`,
      )
    }
    if (agent >= prepared.contestants.length) return yield* problem(`there is no agent ${agent + 1}`)
    return yield* Effect.provideContext(playChunk(prepared, payload), needs)
  }, Effect.scoped)
  return handler(chunkJob, play)
})

const problem = (message: string): DispatchError =>
  new DispatchError({ job: chunkJob.name, message: `on a worker of the cluster: ${message}` })
