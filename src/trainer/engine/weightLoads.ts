/** Loads the weights of a trainer's runs into its engine after each update. */
import { Cause, Effect, Queue, type Scope } from "effect"
import type { EngineService } from "../../decoder/inference/Engine.ts"
import type { EngineError } from "../../decoder/inference/EngineError.ts"
import { reasonOf } from "../orchestrator/failure.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import type { Runs } from "../runs/Runs.ts"
import type { TrainedModel } from "../trainer/TrainedModel.ts"
import type { TrainerEngine } from "./startEngine.ts"

/**
 * Makes the function that loads the current weights of a run (its adapter, or all weights of the model) into the engine.
 * `loaded` is called when the engine has them. The function does not wait for an engine in another thread; if that engine
 * cannot load the weights, the run is evicted.
 */
export const makeWeightLoads = Effect.fnUntraced(function* ({
  trainerEngine: { engine, gathering },
  model,
  runs,
  loaded,
}: {
  readonly trainerEngine: Pick<TrainerEngine, "gathering"> & {
    readonly engine: Pick<EngineService, "loadAdapter" | "loadWeights">
  }
  readonly model: Pick<TrainedModel, "adapterOf" | "stateDictOf">
  readonly runs: Pick<Runs["Service"], "slot" | "evict">
  readonly loaded: (run: RunSlot, step: number) => void
}): Effect.fn.Return<(run: RunSlot) => Effect.Effect<void, EngineError>, never, Scope.Scope> {
  /** Copies the weights of a run, and returns the Effect that loads the copy. */
  const loadOf = (run: RunSlot): Effect.Effect<void, EngineError> => {
    const { id, index } = run
    const { step } = run.progress
    const options = model.adapterOf(index)
    const numbers = model.stateDictOf(index)
    const load =
      options === undefined
        ? engine.loadWeights({ step, weights: numbers })
        : engine.loadAdapter({ name: id, step, adapter: { ...options, tensors: numbers } })
    return Effect.map(load, () => loaded(run, step))
  }
  if (gathering === undefined) return (run) => Effect.suspend(() => loadOf(run))

  /** Tells whether the run still has its index, which another run may have by now. */
  const isTrained = ({ index, generation }: RunSlot): boolean => runs.slot(index)?.generation === generation
  const loads = yield* Queue.unbounded<{ readonly run: RunSlot; readonly load: Effect.Effect<void, EngineError> }>()
  yield* Queue.take(loads).pipe(
    Effect.flatMap(({ run, load }) =>
      // The adapter of a run that has left must not take up room in the engine again.
      isTrained(run)
        ? Effect.catchCause(load, (cause) => {
            if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
            return isTrained(run) ? runs.evict(run.index, reasonOf(cause)) : Effect.void
          })
        : Effect.void,
    ),
    Effect.forever,
    Effect.forkScoped,
  )
  return (run) => Effect.sync(() => void Queue.offerUnsafe(loads, { run, load: loadOf(run) }))
})
