/**
 * Keeps in memory the models that clients use. All models are on disk; of too many in memory, the one that was not used for the
 * longest time is dropped, and opened again when a request for it comes, as after a restart of the server. So models of clients
 * that have gone take no memory.
 */
import { Effect } from "effect"
import { ApiError } from "../../../decoder/serve/ApiError.ts"
import { failedBy } from "../answers.ts"
import * as ModelFiles from "./modelFiles.ts"
import { openModel } from "./models.ts"
import { findRecord, missingSeq, requestIdOf, type TinkerModel, type TinkerState } from "../TinkerState.ts"

/**
 * Tells whether a model has neither work nor callers, so that nothing is lost with its numbers in memory. Requests that wait for
 * one that has not arrived are no work: they are on disk, and their clients may have gone.
 */
const isIdle = (model: TinkerModel): boolean => model.users === 0 && missingSeq(model) !== undefined

/** Removes a model from memory. Its adapter is on disk, and so are the requests of a gradient that is part of no update. */
const drop = (state: TinkerState, model: TinkerModel): void => {
  state.models.delete(model.record.id)
  model.isClosed = true
  model.work.openUnsafe()
}

const noRoom = new ApiError({
  status: 429,
  code: "rate_limit_exceeded",
  param: null,
  message: "all models that this server has in memory are at work; try again later",
})

/** Drops idle models until there is room for another one. Fails if too few are idle. */
const makeRoom = (state: TinkerState): Effect.Effect<void, ApiError> =>
  Effect.suspend(() => {
    const { models, mostLoaded } = state
    const idle = [...models.values()].filter(isIdle).sort((a, b) => a.lastUse - b.lastUse)
    const excess = models.size - mostLoaded + 1
    for (const model of idle.slice(0, Math.max(0, excess))) drop(state, model)
    return models.size < mostLoaded ? Effect.void : Effect.fail(noRoom)
  })

const use = (state: TinkerState, model: TinkerModel): TinkerModel => {
  model.users++
  model.lastUse = ++state.modelUses
  return model
}

const opened = Effect.fnUntraced(function* (state: TinkerState, id: string, owner: string) {
  const loaded = state.models.get(id)
  if (loaded !== undefined) return use(state, loaded)
  // Another client may have unloaded it while this one waited.
  const record = yield* findRecord(state, id, owner)
  yield* makeRoom(state)
  return use(state, yield* openModel(state, record))
})

const take = (state: TinkerState, id: string, owner: string) =>
  Effect.flatMap(findRecord(state, id, owner), () => {
    const loaded = state.models.get(id)
    if (loaded !== undefined) return Effect.succeed(use(state, loaded))
    return opened(state, id, owner).pipe(state.creating.withPermits(1))
  })

/**
 * Runs work with a model of an owner, which stays in memory until the work ends.
 */
export const usingModel = <A, E, R>(
  state: TinkerState,
  { id, owner }: Pick<ModelFiles.ModelRecord, "id" | "owner">,
  work: (model: TinkerModel) => Effect.Effect<A, E, R>,
) =>
  Effect.acquireUseRelease(take(state, id, owner), work, (model) =>
    Effect.sync(() => {
      model.users--
      state.becameIdle.openUnsafe()
    }),
  )

/**
 * Opens the models with requests that a previous process has accepted and not performed, as memory allows. Clients can ask for
 * their outcomes at once.
 */
export const openWaiting = Effect.fnUntraced(function* (state: TinkerState) {
  const { files, records, futures, becameIdle } = state
  const waiting: Array<{ readonly record: ModelFiles.ModelRecord; readonly seqs: ReadonlyArray<number> }> = []
  for (const record of records.values()) {
    const done = new Set(yield* ModelFiles.resultsOf(files, record.id))
    const open = (yield* ModelFiles.requestsOf(files, record.id)).filter((seq) => !done.has(seq))
    for (const seq of open) futures.ensure(requestIdOf(record.id, seq), record.owner)
    if (open.length > 0) waiting.push({ record, seqs: open })
  }
  const openOne = Effect.fnUntraced(function* ({ record: { id, owner }, seqs }: (typeof waiting)[number]) {
    /** Settles the requests of a model that cannot be opened. The other models are opened all the same. */
    const giveUp = (reason: unknown) => {
      const failed = failedBy("server", `the model ${id} cannot be opened; the server's log says why`)
      for (const seq of seqs) futures.settle(requestIdOf(id, seq), failed)
      return Effect.as(Effect.logError(`the model ${id} cannot be opened and is left as it is`, reason), true)
    }
    for (;;) {
      becameIdle.closeUnsafe()
      const isDone = yield* usingModel(state, { id, owner }, () => Effect.succeed(true)).pipe(
        Effect.catch((error) => (error === noRoom ? Effect.succeed(false) : giveUp(error.message))),
        Effect.catchDefect(giveUp),
      )
      if (isDone) return
      yield* becameIdle.await
    }
  })
  yield* Effect.forkIn(Effect.forEach(waiting, openOne, { discard: true }), state.scope)
})
