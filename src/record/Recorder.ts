import { Context, Effect, Layer, type Scope } from "effect"
import type { RunFiles } from "../experiment/RunStore.ts"
import type { RunStoreError } from "../experiment/RunStoreError.ts"
import type { RunEvent, RunStarted } from "./RunEvent.ts"

/** Where a run's events go while it runs. */
export interface Recording {
  /** In batches, in order. Returns when every sink has taken them: a slow sink slows the run rather than losing any. */
  readonly emit: (events: ReadonlyArray<RunEvent>) => Effect.Effect<void, RunStoreError>
  /** Returns when everything emitted so far is where it belongs. */
  readonly flush: Effect.Effect<void, RunStoreError>
}

/** One place for events to go: opened for a run, flushed when the run's scope closes. */
export type Sink = (run: RunFiles, about: RunStarted) => Effect.Effect<Recording, RunStoreError, Scope.Scope>

const merge =
  (sinks: ReadonlyArray<Sink>): Sink =>
  (run, about) =>
    Effect.gen(function* () {
      const recordings = yield* Effect.forEach(sinks, (sink) => sink(run, about))
      const flush = Effect.forEach(recordings, (recording) => recording.flush, { discard: true })
      // Whatever ends the run, what it said is written; a disk that is full has been reported by then.
      yield* Effect.addFinalizer(() => Effect.ignore(flush))
      return {
        emit: (events) => Effect.forEach(recordings, (recording) => recording.emit(events), { discard: true }),
        flush,
      }
    })

/**
 * What records runs: any number of sinks as one.
 *
 * @example
 * ```ts
 * const recorder = Recorder.layer(scores, tensorBoard, (run, about) => …)
 * ```
 */
export class Recorder extends Context.Service<Recorder, { readonly start: Sink }>()("effect-rl/record/Recorder") {
  static readonly layer = (...sinks: ReadonlyArray<Sink>): Layer.Layer<Recorder> =>
    Layer.succeed(Recorder, { start: merge(sinks) })

  /** Records nothing. */
  static readonly layerSilent: Layer.Layer<Recorder> = Recorder.layer()
}
