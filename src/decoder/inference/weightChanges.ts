/**
 * Changes the weights of an engine: loads and unloads adapters, and replaces the base model's weights. A change waits until
 * no request needs the weights that it overwrites; then the engine's loop makes it between two steps.
 */
import { Deferred, Effect, Exit } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import type { EngineService } from "./EngineService.ts"
import { type EngineError, engineError } from "./EngineError.ts"
import { type Change, closeEngine, type EngineState } from "./EngineState.ts"

export const always = (): boolean => true
const never = (): boolean => false

type LoadedAdapter = Parameters<EngineService["loadAdapter"]>[0]

/** Makes the changes that are possible now, in order. Returns a function that tells which requests may begin. */
export const makeChanges = Effect.fnUntraced(function* (state: EngineState) {
  for (let change = state.changes.at(0); change !== undefined; change = state.changes.at(0)) {
    const wait = change.ready()
    if (wait !== null) return wait.mayBegin
    state.making = change
    const exit = yield* Effect.exit(change.perform)
    state.making = null
    state.changes.splice(state.changes.indexOf(change), 1)
    Deferred.doneUnsafe(change.done, exit)
    state.waiters.look()
  }
  return always
})

/** Adds a change to the waiting ones, and returns when it is made. If the caller is interrupted, the change is removed. */
const change = (
  state: EngineState,
  ready: Change["ready"],
  perform: Change["perform"],
): Effect.Effect<void, EngineError> =>
  Effect.suspend(() => {
    if (state.closed !== null) return state.closed
    const entry: Change = { ready, perform, done: Deferred.makeUnsafe() }
    state.changes.push(entry)
    state.work.openUnsafe()
    return Effect.onInterrupt(Deferred.await(entry.done), () =>
      Effect.sync(() => {
        // A change that has begun is completed even after an interruption.
        const index = state.changes.indexOf(entry)
        if (index !== -1 && entry !== state.making) state.changes.splice(index, 1)
      }),
    )
  })

const onDevice = (model: string, effect: Effect.Effect<void, BackendError>): Effect.Effect<void, EngineError> =>
  Effect.mapError(effect, ({ message }) => engineError(model, "backend", message))

/** Tells whether an adapter can be loaded now, or which requests must end before. */
const adapterReady = ({ versions }: EngineState, adapterName: string): ReturnType<Change["ready"]> => {
  const place = versions.placeFor(adapterName)
  if (place === "drain") return { mayBegin: (other) => other !== adapterName }
  return place === "wait" ? { mayBegin: always } : null
}

/** Writes an adapter into a slot. Fails if all slots are taken. */
const writeAdapter = ({ model, versions }: EngineState, { name, step, adapter }: LoadedAdapter) =>
  Effect.suspend(() => {
    const place = versions.placeFor(name)
    if (typeof place !== "number") {
      const problem = `there is room for ${model.adapterSlots} adapters; unload one, or make the engine with more`
      return Effect.fail(engineError(name, "full", problem))
    }
    return Effect.tapError(
      Effect.map(onDevice(name, model.writeAdapter(place, adapter)), () => versions.replace(name, step, place)),
      // If the old version used the same slot, the failed write may have damaged it.
      () => Effect.sync(() => (versions.find(name)?.slot === place ? versions.unload(name) : undefined)),
    )
  })

export const loadAdapter = (state: EngineState, loaded: LoadedAdapter): Effect.Effect<void, EngineError> =>
  Effect.suspend(() => {
    const { name, adapter } = loaded
    if (name === state.name)
      return Effect.fail(engineError(name, "invalidRequest", "an adapter needs another name than the base model"))
    const problem = state.model.adapterProblem(adapter)
    if (problem !== undefined) return Effect.fail(engineError(name, "wrongWeights", problem))
    return change(state, () => adapterReady(state, name), writeAdapter(state, loaded))
  })

export const unloadAdapter = (state: EngineState, name: string): Effect.Effect<void, EngineError> =>
  change(
    state,
    () => null,
    Effect.suspend(() =>
      state.versions.unload(name)
        ? Effect.void
        : Effect.fail(engineError(name, "unknownModel", "there is no such adapter")),
    ),
  )

export const loadWeights = (
  state: EngineState,
  { step, weights }: Parameters<EngineService["loadWeights"]>[0],
): Effect.Effect<void, EngineError> =>
  Effect.suspend(() => {
    const { model, name, versions, scheduler } = state
    const problem = model.weightsProblem(weights)
    if (problem !== undefined) return Effect.fail(engineError(name, "wrongWeights", problem))
    return change(
      state,
      () => (scheduler.isBusy ? { mayBegin: never } : null),
      Effect.tapError(
        Effect.map(onDevice(name, model.writeWeights(weights)), () => versions.replaceBase(step)),
        // Some of the old weights may have been overwritten, so the engine can no longer answer requests.
        (error) => Effect.sync(() => closeEngine(state, Exit.fail(error))),
      ),
    )
  })
