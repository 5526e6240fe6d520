/**
 * Plays chunks of evaluations for other machines. For the first chunk of an evaluation, a worker opens the data set, the
 * models and the agents; it keeps them open for the next chunks.
 */
import { Effect, type Scope } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { type Handler, handler } from "../../spread/cluster/Dispatcher.ts"
import { keptOpen } from "../../spread/cluster/opened.ts"
import type * as Lms from "../lm/Lms.ts"
import { chunkJob, type ChunkPayload } from "./chunks.ts"
import { prepare } from "./Evaluations.ts"
import { playChunk } from "./play.ts"

/** Makes the code of a worker that plays chunks of evaluations. */
export const evaluationHandler: Effect.Effect<Handler, never, Lms.LmNeeds | Scope.Scope> = Effect.gen(function* () {
  const needs = yield* Effect.context<Lms.LmNeeds>()
  const opened = yield* keptOpen((config) =>
    Effect.provideContext(prepare(JSON.parse(config), { source: "the evaluation" }), needs),
  )
  const play = Effect.fnUntraced(function* (payload: ChunkPayload) {
    const { config, identity, agent } = payload
    const prepared = yield* opened(chunkJob.name, JSON.stringify(config), identity)
    if (agent >= prepared.contestants.length) {
      const message = `on a worker of the cluster: there is no agent ${agent + 1}`
      return yield* WorkerError.dispatch(chunkJob.name, message)
    }
    return yield* Effect.provideContext(playChunk(prepared, payload), needs)
  }, Effect.scoped)
  return handler(chunkJob, play)
})
