/**
 * The service that records runs. For each run, it opens all its sinks (destinations such as a file or the terminal),
 * and passes every event of the run to all of them. `Run.ts` starts it.
 *
 * @example
 * ```ts
 * const recorder = Recorder.layer(scores, tensorBoard, runLog, (run, about) =>
 *   Effect.succeed({ emit: (events) => Console.log(events.length), flush: Effect.void }),
 * )
 * ```
 */
import { Context, Effect, Exit, Layer, type Scope, Semaphore } from "effect"
import type { RunFiles } from "../store/RunFiles.ts"
import type { RunStoreError } from "../store/RunStoreError.ts"
import type { RunEvent, RunStarted } from "./RunEvent.ts"

/** Receives the events of one run while the run is in progress. */
export interface Recording {
  /**
   * Takes a batch of events, in order. Returns when every sink has taken it, so that a slow sink slows the run instead
   * of losing events.
   */
  readonly emit: (events: ReadonlyArray<RunEvent>) => Effect.Effect<void, RunStoreError>
  /** Returns when everything emitted so far is written. */
  readonly flush: Effect.Effect<void, RunStoreError>
}

/** Opens a destination for events, such as a file, for a run, and flushes it when the scope of the run closes. */
export type Sink = (run: RunFiles, about: RunStarted) => Effect.Effect<Recording, RunStoreError, Scope.Scope>

/** The recording of a sink that writes nothing. */
export const silent: Recording = { emit: () => Effect.void, flush: Effect.void }

type Effects = ReadonlyArray<Effect.Effect<void, RunStoreError>>

/** Runs all Effects one after another, even after one has failed, and at the end fails with the first error, if any. */
const each = (effects: Effects): Effect.Effect<void, RunStoreError> =>
  Effect.flatMap(Effect.forEach(effects, Effect.exit), (exits) => Exit.asVoidAll(exits))

/** Runs all Effects at the same time, and when all have ended, fails with the first error, if any. */
const together = (effects: Effects): Effect.Effect<void, RunStoreError> =>
  Effect.flatMap(Effect.forEach(effects, Effect.exit, { concurrency: "unbounded" }), (exits) => Exit.asVoidAll(exits))

/** Makes one sink that passes every batch of events to all sinks. */
const merge = (sinks: ReadonlyArray<Sink>): Sink =>
  Effect.fnUntraced(function* (run, about) {
    const recordings = yield* Effect.forEach(sinks, (sink) => sink(run, about))
    // Several fibers may emit at once. A batch goes to all sinks before the next batch goes to any.
    const turn = Semaphore.makeUnsafe(1)
    const inTurn = (effect: Effect.Effect<void, RunStoreError>) => Effect.uninterruptible(turn.withPermit(effect))
    const flush = inTurn(together(recordings.map((recording) => recording.flush)))
    // Write all events even if the run fails. An error such as a full disk has already been reported by then.
    yield* Effect.addFinalizer(() => Effect.ignore(flush))
    return {
      emit: (events) => inTurn(each(recordings.map((recording) => recording.emit(events)))),
      flush,
    }
  })

/** The service that opens the recording of a run by `start`. */
export class Recorder extends Context.Service<Recorder, { readonly start: Sink }>()("effect-rl/run/Recorder") {
  static readonly layer = (...sinks: ReadonlyArray<Sink>): Layer.Layer<Recorder> =>
    Layer.succeed(Recorder, { start: merge(sinks) })

  /** The Layer that records nothing. */
  static readonly layerSilent: Layer.Layer<Recorder> = Recorder.layer()
}
