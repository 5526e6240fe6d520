/**
 * What records runs: a service that opens any number of sinks as one.
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

/** Where a run's events go while it runs. */
export interface Recording {
  /** In batches, in order. Returns when every sink has taken them: a slow sink slows the run rather than losing any. */
  readonly emit: (events: ReadonlyArray<RunEvent>) => Effect.Effect<void, RunStoreError>
  /** Returns when everything emitted so far is where it belongs. */
  readonly flush: Effect.Effect<void, RunStoreError>
}

/** What a sink may know of the run that it records. */
export type RunStartedInfo = RunStarted

/** One place for events to go: opened for a run, flushed when the run's scope closes. */
export type Sink = (run: RunFiles, about: RunStartedInfo) => Effect.Effect<Recording, RunStoreError, Scope.Scope>

/** Does all of them, whatever becomes of the others, then fails with what failed. */
const each = (effects: ReadonlyArray<Effect.Effect<void, RunStoreError>>): Effect.Effect<void, RunStoreError> =>
  Effect.flatMap(Effect.forEach(effects, Effect.exit), (exits) => Exit.asVoidAll(exits))

const merge = (sinks: ReadonlyArray<Sink>): Sink =>
  Effect.fnUntraced(function* (run, about) {
    const recordings = yield* Effect.forEach(sinks, (sink) => sink(run, about))
    // Batches from many fibers go through one by one, and once begun to every sink.
    const turn = Semaphore.makeUnsafe(1)
    const inTurn = (effect: Effect.Effect<void, RunStoreError>) => Effect.uninterruptible(turn.withPermit(effect))
    const flush = inTurn(each(recordings.map((recording) => recording.flush)))
    // Whatever ends the run, what it said is written; a disk that is full has been reported by then.
    yield* Effect.addFinalizer(() => Effect.ignore(flush))
    return {
      emit: (events) => inTurn(each(recordings.map((recording) => recording.emit(events)))),
      flush,
    }
  })

export class Recorder extends Context.Service<Recorder, { readonly start: Sink }>()("effect-rl/run/Recorder") {
  static readonly layer = (...sinks: ReadonlyArray<Sink>): Layer.Layer<Recorder> =>
    Layer.succeed(Recorder, { start: merge(sinks) })

  /** Records nothing. */
  static readonly layerSilent: Layer.Layer<Recorder> = Recorder.layer()
}
